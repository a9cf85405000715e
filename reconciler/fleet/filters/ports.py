"""Ports of the host that are taken: two pods of a node can't have the same port, protocol and address.

A port without an address, or with 0.0.0.0, is taken on every address.
"""

from typing import ClassVar

import numpy as np

from reconciler.fleet.obstacles import HostPortsTaken
from reconciler.fleet.pod_class import PodClass
from reconciler.fleet.rows import Mask
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.pod import Port
from reconciler.model.obstacle import Obstacle

_Slot = tuple[str, int]
_EVERY = "0.0.0.0"  # noqa: S104 - an address compared, not bound to


class Ports:
    """Which ports are taken on each row, and by how many pods; known once somebody asks for a port."""

    name: ClassVar[str] = "ports"
    static: ClassVar[bool] = False

    def __init__(self, fleet: Snapshot) -> None:
        # (protocol, port) -> row -> address -> how many
        self._taken: dict[_Slot, dict[int, dict[str, int]]] | None = None

    def concerns(self, pod_class: PodClass, fleet: Snapshot) -> bool:
        return bool(pod_class.ports)

    def mask(self, pod_class: PodClass, fleet: Snapshot) -> Mask | None:
        if not pod_class.ports:
            return None
        taken = self._known(fleet)
        mask: Mask = np.ones(fleet.rows.capacity, bool)
        for port in pod_class.ports:
            for row, addresses in taken.get(_slot(port), {}).items():
                if _clashes(port, addresses):
                    mask[row] = False
        return mask

    def fits(self, pod_class: PodClass, row: int, fleet: Snapshot) -> bool:
        return not pod_class.ports or not self._clashing(pod_class, row, fleet)

    def why(self, pod_class: PodClass, row: int, fleet: Snapshot) -> Obstacle:
        taken = [f"{each.host_port}/{each.protocol or 'TCP'}" for each in self._clashing(pod_class, row, fleet)]
        return HostPortsTaken(tuple(taken))

    def added(self, pod_class: PodClass, row: int, count: int, fleet: Snapshot) -> None:
        if not pod_class.ports:
            return
        taken = self._known(fleet)
        for port in pod_class.ports:
            addresses = taken.setdefault(_slot(port), {}).setdefault(row, {})
            address = port.host_ip or _EVERY
            addresses[address] = addresses.get(address, 0) + count

    def removed(self, pod_class: PodClass, row: int, count: int, fleet: Snapshot) -> None:
        if not pod_class.ports:
            return
        taken = self._known(fleet)
        for port in pod_class.ports:
            rows = taken[_slot(port)]
            addresses, address = rows[row], port.host_ip or _EVERY
            addresses[address] -= count
            if not addresses[address]:
                del addresses[address]
            if not addresses:
                del rows[row]

    def came(self, row: int, fleet: Snapshot) -> None:
        pass

    def went(self, row: int, fleet: Snapshot) -> None:
        pass

    def fingerprint(self, fleet: Snapshot) -> object:
        names = fleet.rows.names
        return sorted(
            (slot, sorted((names[row], sorted(addresses.items())) for row, addresses in rows.items()))
            for slot, rows in self._known(fleet).items()
            if rows
        )

    def _known(self, fleet: Snapshot) -> dict[_Slot, dict[int, dict[str, int]]]:
        if self._taken is None:
            self._taken = {}
            for row in fleet.rows.row_of.values():
                for pod_class, count in fleet.booked_on(row).items():
                    self.added(pod_class, row, count, fleet)
            fleet.listen(self)
        return self._taken

    def _clashing(self, pod_class: PodClass, row: int, fleet: Snapshot) -> list[Port]:
        taken = self._known(fleet)
        return [each for each in pod_class.ports if _clashes(each, taken.get(_slot(each), {}).get(row, {}))]


def _slot(port: Port) -> _Slot:
    return port.protocol or "TCP", port.host_port


def _clashes(port: Port, addresses: dict[str, int]) -> bool:
    address = port.host_ip or _EVERY
    return bool(addresses) and (address == _EVERY or address in addresses or _EVERY in addresses)
