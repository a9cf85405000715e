"""Binding of unbound claims on a node: the smallest suitable volume, or a provisioned one.

As in the scheduler: a volume that is reserved for a claim comes first. Then, from the smallest claim to the largest,
the smallest volume that the node can access. Remaining claims are provisioned, if their storage class does so.
"""

from collections.abc import Mapping

import msgspec

from reconciler.fleet.pod_classes import PodClass
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.fleet.storage.stored import StorageIndex
from reconciler.fleet.storage.wanted import Key, StorageRequirements, agrees, allows, key_of, reaches
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.volumes import STORAGE, PersistentVolume, PersistentVolumeClaim
from reconciler.model.quantity import requested_amount

TO_BE_MADE = ""  # instead of a volume name


class VolumeReservation(msgspec.Struct, frozen=True, gc=False):
    """The volume that an unbound claim got in the simulation, and its node."""

    node: str
    volume: str
    pods: int  # number of pods that use the claim


class Stock(msgspec.Struct, frozen=True):
    """The available volumes: observed ones, without reserved ones."""

    stored: StorageIndex
    promises: Mapping[Key, VolumeReservation]
    taken: Mapping[str, Key]  # reserved volumes


def chosen(want: StorageRequirements, node: Node, stock: Stock) -> dict[Key, str] | None:
    """A volume name for each claim without a reservation; None if the node is unsuitable."""
    to_be_made, to_be_found = [], []
    for claim in want.unbound:
        promise = stock.promises.get(key_of(claim))
        selected = claim.metadata.annotations.selected_node
        if promise is not None:
            if not _is_kept(promise, node, stock):
                return None
        elif not selected:
            to_be_found.append(claim)
        elif selected == node.name:
            to_be_made.append(claim)
        else:
            return None
    found: dict[Key, str] = {}
    for claim in sorted(to_be_found, key=_size):
        volume = _smallest(claim, node, stock, found)
        if volume is None:
            to_be_made.append(claim)
        else:
            found[key_of(claim)] = volume.metadata.name
    if not all(_can_be_made(claim, node, stock.stored) for claim in to_be_made):
        return None
    return found | {key_of(claim): TO_BE_MADE for claim in to_be_made}


def only_node(want: StorageRequirements, stock: Stock) -> str:
    """The only possible node for a claim that is being provisioned; empty if any node is possible."""
    for claim in want.unbound:
        promise = stock.promises.get(key_of(claim))
        if promise is not None and promise.volume == TO_BE_MADE:
            return promise.node
        if promise is None and claim.metadata.annotations.selected_node:
            return claim.metadata.annotations.selected_node
    return ""


def _can_be_made(claim: PersistentVolumeClaim, node: Node, stored: StorageIndex) -> bool:
    storage_class = stored.storage_class(claim.storage_class)
    return storage_class is not None and storage_class.provisions and allows(storage_class, node)


def _smallest(
    claim: PersistentVolumeClaim, node: Node, stock: Stock, found: Mapping[Key, str]
) -> PersistentVolume | None:
    own = stock.stored.kept_for(claim)
    if own is not None:
        return own if reaches(node, own) else None
    taken = {*stock.taken, *found.values()} if found else stock.taken
    return stock.stored.offer(claim).smallest(node, taken)


def _is_kept(promise: VolumeReservation, node: Node, stock: Stock) -> bool:
    """Whether another pod can use the reservation on the node. A provisioned volume is on its node."""
    if promise.volume == TO_BE_MADE:
        return promise.node == node.name
    volume = stock.stored.volume(promise.volume)
    return volume is not None and reaches(node, volume) and agrees(node, volume)


def _size(claim: PersistentVolumeClaim) -> int:
    result: int = requested_amount(claim.spec.resources.requests.get(STORAGE, "0"))
    return result


# --- Owner of the reservations of unbound claims: an existing volume each, or one provisioned on the pod's node.
#
# Claims of pods that were observed on their node are left as observed: the pod was bound without waiting for the
# claim.


class Promises:
    """A part of a snapshot: `fleet.part(Promises)`. `version` changes with the reservations."""

    def __init__(self, fleet: Snapshot) -> None:
        self.version = 0
        self._stored = fleet.part(StorageIndex)
        self._observed: Observed | None = None
        self._made: dict[Key, VolumeReservation] = {}
        self._taken: dict[str, Key] = {}
        self._seen: set[tuple[Key, int]] = set()  # claims, and the rows with an observed pod that uses them
        # A claim's reservation on a node before its removal: a rollback must restore the same one.
        self._before: dict[tuple[Key, str], str] = {}
        fleet.listen(self)

    def stock(self, fleet: Snapshot) -> Stock:
        """The available volumes."""
        self._stored.renew(fleet)
        if self._observed is not fleet.observed:
            self._begin(fleet)
        return Stock(self._stored, self._made, self._taken)

    def added(self, pod_class: PodClass, row: int, count: int, fleet: Snapshot) -> None:
        want = self._stored.wanted(pod_class, fleet)
        if not want.unbound or self._observed is not fleet.observed:
            return
        node = fleet.rows.node(row)
        found = chosen(want, node, Stock(self._stored, self._made, self._taken)) or {}
        for claim in want.unbound:
            key = key_of(claim)
            if (key, row) not in self._seen:
                self._promise(key, node.name, found.get(key, TO_BE_MADE), count)

    def removed(self, pod_class: PodClass, row: int, count: int, fleet: Snapshot) -> None:
        want = self._stored.wanted(pod_class, fleet)
        if not want.unbound or self._observed is not fleet.observed:
            return
        for claim in want.unbound:
            key = key_of(claim)
            if (key, row) not in self._seen:
                self._give_back(key, count)

    def came(self, row: int, fleet: Snapshot) -> None:
        pass

    def went(self, row: int, fleet: Snapshot) -> None:
        pass

    def fingerprint(self, fleet: Snapshot) -> object:
        self.stock(fleet)
        return [sorted(self._made.items()), sorted(self._taken.items())]

    def _promise(self, key: Key, node: str, volume: str, count: int) -> None:
        self.version += 1
        made = self._made.get(key)
        if made is not None:
            self._made[key] = VolumeReservation(made.node, made.volume, made.pods + count)
            return
        before = self._before.pop((key, node), None)
        if before is not None and before not in self._taken:
            volume = before
        self._made[key] = VolumeReservation(node, volume, count)
        if volume != TO_BE_MADE:
            self._taken[volume] = key

    def _give_back(self, key: Key, count: int) -> None:
        self.version += 1
        made = self._made.pop(key)
        if made.pods > count:
            self._made[key] = VolumeReservation(made.node, made.volume, made.pods - count)
            return
        self._before[key, made.node] = made.volume
        if made.volume != TO_BE_MADE:
            del self._taken[made.volume]

    def _begin(self, fleet: Snapshot) -> None:
        """Initializes from the observed state and existing bookings."""
        self._observed = fleet.observed
        self._made, self._taken, self._seen, self._before = {}, {}, set(), {}
        self.version += 1
        for row in sorted(fleet.rows.row_of.values()):
            for pod in fleet.pods_of_row(row):
                if pod.spec.volumes:
                    want = self._stored.wanted(fleet.classes.of(pod), fleet)
                    self._seen |= {(key_of(claim), row) for claim in want.unbound}
        for row in sorted(fleet.rows.row_of.values()):
            for pod_class, count in sorted(fleet.booked_on(row).items(), key=lambda each: each[0].number):
                if pod_class.pod.spec.volumes:
                    self.added(pod_class, row, count, fleet)
