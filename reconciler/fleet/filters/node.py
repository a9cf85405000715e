"""Predicates for a single node: cordon, name, taints, node affinity, resources, and host ports."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

import numpy as np

from reconciler.fleet.node_terms import Tolerance, readable, term_holds
from reconciler.fleet.obstacles import (
    AffinityUnmatched,
    HostPortsTaken,
    LabelDiffers,
    Lack,
    NodeCordoned,
    OtherNodeNamed,
    ResourcesLacking,
    SelectedLabelAbsent,
    TaintNotTolerated,
)
from reconciler.fleet.pod_classes import Needs, PodClass
from reconciler.fleet.rows import Mask, NodeRows
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.fleet.term_masks import term_mask
from reconciler.model.cluster.node import Node, NodeTaint
from reconciler.model.cluster.pod import Port, Toleration
from reconciler.model.plan.decision import Obstacle

_CORDONED = NodeTaint("node.kubernetes.io/unschedulable", "NoSchedule")


class Unschedulable:
    """Cordoned nodes."""

    name: ClassVar[str] = "unschedulable"
    static: ClassVar[bool] = True

    def __init__(self, fleet: Snapshot) -> None:
        self._open: Mask = np.zeros(0, bool)  # by group of taints; entries never change

    def concerns(self, pod_class: PodClass, fleet: Snapshot) -> bool:
        return not pod_class.needs.tolerance.bears(_CORDONED)

    def mask(self, pod_class: PodClass, fleet: Snapshot) -> Mask | None:
        if not self.concerns(pod_class, fleet):
            return None
        groups = fleet.rows.taint_groups
        if len(self._open) != len(groups):
            self._open = np.array([not cordoned for _, cordoned in groups], bool)
        if self._open.all():
            return None
        mask: Mask = self._open[fleet.rows.taint_group]
        return mask

    def fits(self, pod_class: PodClass, row: int, fleet: Snapshot) -> bool:
        return not fleet.rows.node(row).spec.unschedulable or not self.concerns(pod_class, fleet)

    def why(self, pod_class: PodClass, row: int, fleet: Snapshot) -> Obstacle:
        return NodeCordoned()


# --- A pod that names its node fits on no other.


class NodeName:
    """The node that a pod names."""

    name: ClassVar[str] = "node name"
    static: ClassVar[bool] = True

    def __init__(self, fleet: Snapshot) -> None:
        pass

    def concerns(self, pod_class: PodClass, fleet: Snapshot) -> bool:
        return bool(pod_class.needs.node_name)

    def mask(self, pod_class: PodClass, fleet: Snapshot) -> Mask | None:
        named = pod_class.needs.node_name
        if not named:
            return None
        mask: Mask = np.zeros(fleet.rows.capacity, bool)
        row = fleet.rows.row_of.get(named)
        if row is not None:
            mask[row] = True
        return mask

    def fits(self, pod_class: PodClass, row: int, fleet: Snapshot) -> bool:
        named = pod_class.needs.node_name
        return not named or fleet.rows.row_of.get(named) == row

    def why(self, pod_class: PodClass, row: int, fleet: Snapshot) -> Obstacle:
        return OtherNodeNamed(pod_class.needs.node_name)


# --- Taints that a pod does not tolerate: NoSchedule and NoExecute exclude the pod, PreferNoSchedule does not.

_HARD = frozenset({"NoSchedule", "NoExecute"})


class TaintFilter:
    """Taints of nodes."""

    name: ClassVar[str] = "taints"
    static: ClassVar[bool] = True

    def __init__(self, fleet: Snapshot) -> None:
        self._groups_of: dict[tuple[str, str, str], tuple[NodeTaint, list[int]]] = {}  # groups of nodes with a taint
        self._known = 0  # number of processed groups

    def concerns(self, pod_class: PodClass, fleet: Snapshot) -> bool:
        return True

    def mask(self, pod_class: PodClass, fleet: Snapshot) -> Mask | None:
        groups, tolerance = fleet.rows.taint_groups, pod_class.needs.tolerance
        self._learn(groups)
        borne: Mask = np.ones(len(groups), bool)
        for taint, where in self._groups_of.values():
            if not tolerance.bears(taint):
                borne[where] = False
        if borne.all():
            return None
        mask: Mask = borne[fleet.rows.taint_group]
        return mask

    def fits(self, pod_class: PodClass, row: int, fleet: Snapshot) -> bool:
        return unborne(fleet.rows.node(row).spec.taints, pod_class.needs.tolerance) is None

    def why(self, pod_class: PodClass, row: int, fleet: Snapshot) -> Obstacle:
        taint = unborne(fleet.rows.node(row).spec.taints, pod_class.needs.tolerance)
        if taint is None:
            raise LookupError("the pod tolerates every taint")
        return TaintNotTolerated(taint.key, taint.value, taint.effect)

    def _learn(self, groups: Sequence[tuple[tuple[NodeTaint, ...], bool]]) -> None:
        """Processes new groups; known groups are kept."""
        for number in range(self._known, len(groups)):
            for taint in groups[number][0]:
                if taint.effect in _HARD:
                    key = (taint.key, taint.effect, taint.value)
                    self._groups_of.setdefault(key, (taint, []))[1].append(number)
        self._known = len(groups)


def unborne(taints: Iterable[NodeTaint], tolerance: Tolerance) -> NodeTaint | None:
    """The first taint that excludes the pod."""
    for taint in taints:
        if taint.effect in _HARD and not tolerance.bears(taint):
            return taint
    return None


def untolerated(taints: Iterable[NodeTaint], tolerations: Iterable[Toleration]) -> NodeTaint | None:
    """The first taint that excludes the pod."""
    return unborne(taints, Tolerance(tolerations))


def tolerated(taint: NodeTaint, tolerations: Iterable[Toleration]) -> bool:
    """Whether a toleration matches the taint."""
    return Tolerance(tolerations).bears(taint)


# --- The nodes that a pod selects: its nodeSelector, and any term of its required node affinity.


class Selection:
    """Labels and names of the nodes."""

    name: ClassVar[str] = "selection"
    static: ClassVar[bool] = True

    def __init__(self, fleet: Snapshot) -> None:
        pass

    def concerns(self, pod_class: PodClass, fleet: Snapshot) -> bool:
        return bool(pod_class.needs.selector) or pod_class.needs.terms is not None

    def mask(self, pod_class: PodClass, fleet: Snapshot) -> Mask | None:
        return selected(pod_class.needs, fleet.rows) if self.concerns(pod_class, fleet) else None

    def fits(self, pod_class: PodClass, row: int, fleet: Snapshot) -> bool:
        return selects(pod_class.needs, fleet.rows.node(row))

    def why(self, pod_class: PodClass, row: int, fleet: Snapshot) -> Obstacle:
        labels = fleet.rows.node(row).metadata.labels
        for key, value in sorted(pod_class.needs.selector.items()):
            if labels.get(key) != value:
                there = labels.get(key)
                return SelectedLabelAbsent(key, value) if there is None else LabelDiffers(key, value, there)
        return AffinityUnmatched()


def selected(needs: Needs, rows: NodeRows) -> Mask:
    """The rows that nodeSelector and required node affinity allow."""
    mask: Mask = np.ones(rows.capacity, bool)
    for key, value in needs.selector.items():
        if not rows.has_label(key):
            mask[:] = False
            return mask
        mask &= rows.column(key) == rows.value_id(key, value)
    if needs.terms is not None:
        one: Mask = np.zeros(rows.capacity, bool)
        for term in needs.terms.node_selector_terms:
            if readable(term):
                one |= term_mask(term, rows)
        mask &= one
    return mask


def selects(needs: Needs, node: Node) -> bool:
    """Like `selected`, for one node."""
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in needs.selector.items()):
        return False
    if needs.terms is None:
        return True
    return any(readable(term) and term_holds(term, node) for term in needs.terms.node_selector_terms)


# --- Free resources of a node: enough of each requested resource, and of the pod count.


class ResourceFilter:
    """Allocatable minus booked resources."""

    name: ClassVar[str] = "resources"
    static: ClassVar[bool] = False

    def __init__(self, fleet: Snapshot) -> None:
        pass

    def concerns(self, pod_class: PodClass, fleet: Snapshot) -> bool:
        return True

    def mask(self, pod_class: PodClass, fleet: Snapshot) -> Mask | None:
        return fleet.stock.roomy(pod_class.request)

    def fits(self, pod_class: PodClass, row: int, fleet: Snapshot) -> bool:
        return fleet.stock.room(pod_class.request, row) > 0

    def why(self, pod_class: PodClass, row: int, fleet: Snapshot) -> Obstacle:
        stock, names = fleet.stock, fleet.classes.resources
        lacks = (
            Lack(names[column], amount, free, stock.allocatable_at(row, column))
            for column, amount in pod_class.request
            if (free := stock.free_at(row, column)) < amount
        )
        return ResourcesLacking(tuple(lacks))


# --- Host ports: two pods on a node cannot have the same port, protocol and address.
#
# A port without an address, or with 0.0.0.0, conflicts with every address.

_Slot = tuple[str, int]
_EVERY = "0.0.0.0"  # noqa: S104 - an address compared, not bound to


class Ports:
    """Used ports of each row with their number of pods; computed at the first query."""

    name: ClassVar[str] = "ports"
    static: ClassVar[bool] = False

    def __init__(self, fleet: Snapshot) -> None:
        # (protocol, port) -> row -> address -> number of pods
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
