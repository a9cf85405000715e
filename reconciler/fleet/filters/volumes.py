"""Predicates for volumes: where they are accessible, volume limits of nodes, and ReadWriteOncePod claims."""

from collections import defaultdict
from typing import ClassVar

import numpy as np

from reconciler.fleet.obstacles import (
    NoVolumeToChoose,
    VolumeInOtherZone,
    VolumeInUse,
    VolumeLimitReached,
    VolumeUnreachable,
)
from reconciler.fleet.pod_classes import PodClass
from reconciler.fleet.rows import Mask, NodeRows
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.fleet.storage.binding import Promises, Stock, chosen, only_node
from reconciler.fleet.storage.holding import Holding
from reconciler.fleet.storage.stored import StorageIndex
from reconciler.fleet.storage.wanted import (
    NOTHING,
    Held,
    Key,
    StorageRequirements,
    agreed,
    agrees,
    allowed,
    claims_of,
    key_of,
    reached,
    reaches,
)
from reconciler.model.cluster.volumes import PersistentVolumeClaim
from reconciler.model.plan.decision import Obstacle


class VolumePlaces:
    """Observed volumes and reservations; read at each query, which is fast."""

    name: ClassVar[str] = "volumes"
    static: ClassVar[bool] = False

    def __init__(self, fleet: Snapshot) -> None:
        self._stored = fleet.part(StorageIndex)

    def concerns(self, pod_class: PodClass, fleet: Snapshot) -> bool:
        return self._stored.wanted(pod_class, fleet) is not NOTHING

    def mask(self, pod_class: PodClass, fleet: Snapshot) -> Mask | None:
        want = self._stored.wanted(pod_class, fleet)
        if want is NOTHING:
            return None
        if want.nowhere or want.unmodelled:
            return np.zeros(fleet.rows.capacity, bool)
        mask = _bound(want, fleet)
        if want.unbound:
            others = _chosen(want, fleet)
            mask = others if mask is None else mask & others
        return mask

    def fits(self, pod_class: PodClass, row: int, fleet: Snapshot) -> bool:
        want = self._stored.wanted(pod_class, fleet)
        if want is NOTHING:
            return True
        if want.nowhere or want.unmodelled:
            return False
        node = fleet.rows.node(row)
        return (
            all(reaches(node, each) for each in want.bound)
            and all(agrees(node, each) for each in want.labelled)
            and (not want.unbound or chosen(want, node, fleet.part(Promises).stock(fleet)) is not None)
        )

    def why(self, pod_class: PodClass, row: int, fleet: Snapshot) -> Obstacle:
        want = self._stored.wanted(pod_class, fleet)
        if nowhere := want.nowhere or want.unmodelled:
            return nowhere
        node = fleet.rows.node(row)
        for volume in want.bound:
            if not reaches(node, volume):
                return VolumeUnreachable(volume.metadata.name)
        for volume in want.labelled:
            if not agrees(node, volume):
                return VolumeInOtherZone(volume.metadata.name)
        return NoVolumeToChoose(tuple([each.title for each in want.unbound]))


def _bound(want: StorageRequirements, fleet: Snapshot) -> Mask | None:
    masks = [reached(each, fleet.rows) for each in want.bound] + [agreed(each, fleet.rows) for each in want.labelled]
    found = [each for each in masks if each is not None]
    return np.logical_and.reduce(found) if found else None


def _chosen(want: StorageRequirements, fleet: Snapshot) -> Mask:
    """The rows where all unbound claims get a volume. Checked row by row only if claims may compete."""
    stock, rows = fleet.part(Promises).stock(fleet), fleet.rows
    groups = _alike(want, stock)
    if groups is not None:
        mask: Mask = np.ones(rows.capacity, bool)
        for claims in groups:
            mask &= _where_all(claims, rows, stock)
        return mask
    mask = np.zeros(rows.capacity, bool)
    only = only_node(want, stock)
    for name, row in rows.row_of.items():
        if not only or name == only:
            mask[row] = chosen(want, rows.node(row), stock) is not None
    return mask


def _alike(want: StorageRequirements, stock: Stock) -> list[list[PersistentVolumeClaim]] | None:
    """The claims grouped by candidate volumes; None if groups overlap or a volume is reserved."""
    groups: dict[int, list[PersistentVolumeClaim]] = defaultdict(list)
    classes: dict[str, int] = {}
    for claim in want.unbound:
        is_promised = key_of(claim) in stock.promises or claim.metadata.annotations.selected_node
        own, offer = stock.stored.kept_for(claim), id(stock.stored.offer(claim))
        if is_promised or classes.setdefault(claim.storage_class, offer) != offer or (own and len(want.unbound) > 1):
            return None
        groups[offer].append(claim)
    return list(groups.values())


def _where_all(claims: list[PersistentVolumeClaim], rows: NodeRows, stock: Stock) -> Mask:
    """The rows where each of some equal claims gets its own volume, existing or provisioned."""
    claim = claims[0]
    own = stock.stored.kept_for(claim)
    there: Mask = stock.stored.offer(claim).counts(rows, stock.taken.keys()) >= len(claims)
    if own is not None:
        only = reached(own, rows)
        there = np.ones_like(there) if only is None else only
    storage_class = stock.stored.storage_class(claim.storage_class)
    if storage_class is None or not storage_class.provisions:
        return there
    made = allowed(storage_class, rows)
    return np.ones_like(there) if made is None else there | made


# --- Volume limits: whether a node has room for a pod's volumes.


class VolumeLimits:
    """Volume limits of drivers minus attached volumes."""

    name: ClassVar[str] = "volume limits"
    static: ClassVar[bool] = False

    def __init__(self, fleet: Snapshot) -> None:
        self._stored = fleet.part(StorageIndex)
        self._holding = fleet.part(Holding)

    def concerns(self, pod_class: PodClass, fleet: Snapshot) -> bool:
        return bool(self._by_driver(pod_class, fleet))

    def mask(self, pod_class: PodClass, fleet: Snapshot) -> Mask | None:
        mask: Mask | None = None
        there: set[int] = set()
        for driver, held in self._by_driver(pod_class, fleet).items():
            bearable: Mask = self._holding.counts[driver] + len(held) <= self._holding.limits[driver]
            mask = bearable if mask is None else mask & bearable
            there.update(row for each in held for row in self._holding.rows_of(each))
        if mask is not None:
            # A volume that is already on the node does not count again.
            for row in there:
                mask[row] = self._over(pod_class, row, fleet) is None
        return mask

    def fits(self, pod_class: PodClass, row: int, fleet: Snapshot) -> bool:
        return self._over(pod_class, row, fleet) is None

    def why(self, pod_class: PodClass, row: int, fleet: Snapshot) -> Obstacle:
        driver = self._over(pod_class, row, fleet)
        if driver is None:
            raise LookupError("the node has room for the volumes")
        limit, count = self._holding.limits[driver][row], self._holding.counts[driver][row]
        return VolumeLimitReached(int(limit), driver, int(count))

    def _over(self, pod_class: PodClass, row: int, fleet: Snapshot) -> str | None:
        """A driver whose limit would be exceeded."""
        for driver, held in sorted(self._by_driver(pod_class, fleet).items()):
            more = sum(row not in self._holding.rows_of(each) for each in held)
            if more and self._holding.counts[driver][row] + more > self._holding.limits[driver][row]:
                return driver
        return None

    def _by_driver(self, pod_class: PodClass, fleet: Snapshot) -> dict[str, list[Held]]:
        """The class' volumes of drivers that have a limit on any node."""
        result: dict[str, list[Held]] = {}
        held = self._stored.wanted(pod_class, fleet).held
        if held:
            self._holding.renew(fleet)
            result = defaultdict(list)
            for each in held:
                if each[0] in self._holding.limits:
                    result[each[0]].append(each)
        return result


# --- ReadWriteOncePod claims: while one pod uses the claim, no other pod can run anywhere.


class OnePodOnly:
    """Number of pods that use each claim; computed at the first query."""

    name: ClassVar[str] = "volumes of one pod"
    static: ClassVar[bool] = False

    def __init__(self, fleet: Snapshot) -> None:
        self._stored = fleet.part(StorageIndex)
        self._uses: dict[Key, int] = {}
        self._counts = False
        fleet.listen(self)

    def concerns(self, pod_class: PodClass, fleet: Snapshot) -> bool:
        return bool(self._stored.wanted(pod_class, fleet).alone)

    def mask(self, pod_class: PodClass, fleet: Snapshot) -> Mask | None:
        return None if self._taken(pod_class, fleet) is None else np.zeros(fleet.rows.capacity, bool)

    def fits(self, pod_class: PodClass, row: int, fleet: Snapshot) -> bool:
        return self._taken(pod_class, fleet) is None

    def why(self, pod_class: PodClass, row: int, fleet: Snapshot) -> Obstacle:
        taken = self._taken(pod_class, fleet)
        if taken is None:
            raise LookupError("no other pod uses the volumes")
        return VolumeInUse("/".join(taken))

    def added(self, pod_class: PodClass, row: int, count: int, fleet: Snapshot) -> None:
        if self._counts and pod_class.pod.spec.volumes:
            for key in claims_of(pod_class.pod):
                self._uses[key] = self._uses.get(key, 0) + count

    def removed(self, pod_class: PodClass, row: int, count: int, fleet: Snapshot) -> None:
        if self._counts and pod_class.pod.spec.volumes:
            for key in claims_of(pod_class.pod):
                self._uses[key] -= count
                if not self._uses[key]:
                    del self._uses[key]

    def came(self, row: int, fleet: Snapshot) -> None:
        pass

    def went(self, row: int, fleet: Snapshot) -> None:
        pass

    def fingerprint(self, fleet: Snapshot) -> object:
        self._count(fleet)
        return sorted(self._uses.items())

    def _taken(self, pod_class: PodClass, fleet: Snapshot) -> Key | None:
        alone = self._stored.wanted(pod_class, fleet).alone
        if not alone:
            return None
        self._count(fleet)
        return next((key for key in alone if key in self._uses), None)

    def _count(self, fleet: Snapshot) -> None:
        if self._counts:
            return
        self._counts = True
        for row in fleet.rows.row_of.values():
            for pod_class, count in fleet.booked_on(row).items():
                self.added(pod_class, row, count, fleet)
