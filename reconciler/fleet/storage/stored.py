"""Owner of the claims, volumes and classes as last seen, by name, and of what each class of pods wants of them."""

from collections import defaultdict
from collections.abc import Container, Iterator, KeysView, Sequence

import msgspec
import numpy as np

from reconciler.fleet.pod_classes import PodClass
from reconciler.fleet.rows import Counts, NodeRows
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.fleet.storage.wanted import NOTHING, Key, StorageRequirements, plain_term, reached, reaches, wanted
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.volumes import STORAGE, PersistentVolume, PersistentVolumeClaim, StorageClass
from reconciler.model.quantity import amount_offered, requested_amount

# --- Owner of the unclaimed volumes that would do for claims that are alike, and of how many of them each row reaches.
#
# Nearly every volume names one label and the values that will do, so that the few that a node reaches are found by the
# node's labels; the others are tried one by one.


class VolumeOffer:
    """Volumes, the smallest first."""

    def __init__(self, volumes: Sequence[PersistentVolume]) -> None:
        self.volumes = volumes
        self._index = {each.metadata.name: number for number, each in enumerate(volumes)}
        self._by_label: dict[str, dict[str, list[int]]] = {}
        self._others: list[int] = []
        self._version = -1, -1  # of the rows, and their capacity
        self._counts: Counts = np.zeros(0, np.int64)
        self._left_out: set[str] = set()  # volumes that are not counted, since they are taken
        for number, volume in enumerate(volumes):
            plain = plain_term(volume)
            if plain is None:
                self._others.append(number)
            else:
                by_value = self._by_label.setdefault(plain[0], defaultdict(list))
                for value in sorted(set(plain[1])):
                    by_value[value].append(number)

    def smallest(self, node: Node, taken: Container[str]) -> PersistentVolume | None:
        """The smallest that the node reaches and that is not taken."""
        found = len(self.volumes)
        for numbers in self._near(node):
            for number in numbers:
                if number >= found:
                    break
                if self.volumes[number].metadata.name not in taken and reaches(node, self.volumes[number]):
                    found = number
        return self.volumes[found] if found < len(self.volumes) else None

    def counts(self, rows: NodeRows, taken: KeysView[str]) -> Counts:
        """How many that are not taken each row reaches. Not to be changed."""
        if self._version != (rows.version, rows.capacity):
            self._version = rows.version, rows.capacity
            self._counts, self._left_out = self._counted(rows), set()
        for name in sorted((taken & self._index.keys()) ^ self._left_out):
            mask = reached(self.volumes[self._index[name]], rows)
            change = 1 if name in self._left_out else -1
            self._counts[slice(None) if mask is None else mask] += change
            self._left_out ^= {name}
        return self._counts

    def _near(self, node: Node) -> Iterator[list[int]]:
        yield self._others
        for key, by_value in self._by_label.items():
            value = node.metadata.labels.get(key)
            if value in by_value:
                yield by_value[value]

    def _counted(self, rows: NodeRows) -> Counts:
        result: Counts = np.zeros(rows.capacity, np.int64)
        for key, by_value in self._by_label.items():
            column = rows.column(key)  # first: it gives numbers to the values that nodes have
            many = [len(by_value.get(value, ())) for value in rows.values(key)]
            of_value = np.array([*many, 0], np.int64)  # absent is -1, the last
            result += of_value[column]
        for number in self._others:
            mask = reached(self.volumes[number], rows)
            result[slice(None) if mask is None else mask] += 1
        return result


class Alike(msgspec.Struct, frozen=True):
    """What of a claim decides which volumes would do."""

    storage_class: str
    size: int
    volume_mode: str
    attributes_class: str
    access_modes: frozenset[str]
    selector: bytes


# Without one of these, nothing can be said of a pod that claims a volume.
_TITLES = (
    "persistentvolumeclaims",
    "persistentvolumes",
    "storageclasses.storage.k8s.io",
    "csidrivers.storage.k8s.io",
    "csinodes.storage.k8s.io",
    "volumeattachments.storage.k8s.io",
)
_AVAILABLE = "Available"


class StorageIndex:
    """A part of a what-if: `fleet.part(Stored)`. `version` is another when any of it is."""

    def __init__(self, fleet: Snapshot) -> None:
        self.version = 0
        self.unread = ""
        self._observed: Observed | None = None
        self._seen: tuple[object, ...] = ()
        self._claims: dict[Key, PersistentVolumeClaim] = {}
        self._volumes: dict[str, PersistentVolume] = {}
        self._classes: dict[str, StorageClass] = {}
        self._tracking: frozenset[str] = frozenset()
        self._unclaimed: dict[str, list[PersistentVolume]] = {}  # by class, the smallest first
        self._kept_for: dict[Key, list[PersistentVolume]] = {}
        self._offers: dict[Alike, VolumeOffer] = {}
        self._wanted: dict[PodClass, StorageRequirements] = {}

    def wanted(self, pod_class: PodClass, fleet: Snapshot) -> StorageRequirements:
        """What such a pod wants; the one NOTHING where it wants no volume."""
        if not pod_class.pod.spec.volumes:
            return NOTHING
        self.renew(fleet)
        storage_requirements = self._wanted.get(pod_class)
        if storage_requirements is None:
            storage_requirements = self._wanted[pod_class] = wanted(pod_class.pod, self)
        return storage_requirements

    def renew(self, fleet: Snapshot) -> None:
        """Looks whether any of it was seen anew."""
        observed = fleet.observed
        if observed is self._observed:
            return
        self._observed = observed
        seen = (observed.volume_claims, observed.volumes, observed.storage_classes, observed.csi_drivers)
        unread = observed.why_unread(*_TITLES)
        is_same = bool(self._seen) and all(one is other for one, other in zip(seen, self._seen, strict=True))
        if not is_same or unread != self.unread:
            self._seen, self.unread = seen, unread
            self._read(observed)

    def claim(self, key: Key) -> PersistentVolumeClaim | None:
        return self._claims.get(key)

    def volume(self, name: str) -> PersistentVolume | None:
        return self._volumes.get(name)

    def storage_class(self, name: str) -> StorageClass | None:
        return self._classes.get(name)

    def tracks_room(self, driver: str) -> bool:
        """Whether a driver says how much room it has on each node."""
        return driver in self._tracking

    def offer(self, claim: PersistentVolumeClaim) -> VolumeOffer:
        """The volumes that are kept for nobody and would do for a claim; one offer for all claims that are alike."""
        spec = claim.spec
        alike = Alike(
            claim.storage_class,
            _size(claim),
            spec.volume_mode,
            spec.volume_attributes_class_name,
            frozenset(spec.access_modes),
            msgspec.json.encode(spec.selector, order="deterministic"),
        )
        volume_offer = self._offers.get(alike)
        if volume_offer is None:
            unclaimed = self._unclaimed.get(alike.storage_class, ())
            volume_offer = self._offers[alike] = VolumeOffer([each for each in unclaimed if _is_offered(claim, each)])
        return volume_offer

    def kept_for(self, claim: PersistentVolumeClaim) -> PersistentVolume | None:
        """A volume that is kept for a claim though the claim knows of none: then no other comes into question."""
        about = claim.metadata
        for each in self._kept_for.get((about.namespace, about.name), ()):
            if each.storage_class == claim.storage_class and _is_for(each, about.uid) and _suits(claim, each):
                return each
        return None

    def _read(self, observed: Observed) -> None:
        self.version += 1
        self._wanted.clear()
        self._offers.clear()
        self._claims = {(each.metadata.namespace, each.metadata.name): each for each in observed.volume_claims}
        self._volumes = {each.metadata.name: each for each in observed.volumes}
        self._classes = {each.metadata.name: each for each in observed.storage_classes}
        self._tracking = frozenset(each.metadata.name for each in observed.csi_drivers if each.spec.storage_capacity)
        unclaimed, kept_for = defaultdict(list), defaultdict(list)
        for each in sorted(observed.volumes, key=_order):
            reference = each.spec.claim_ref
            if reference is None:
                unclaimed[each.storage_class].append(each)
            else:
                kept_for[reference.namespace, reference.name].append(each)
        self._unclaimed, self._kept_for = dict(unclaimed), dict(kept_for)


def _order(volume: PersistentVolume) -> tuple[int, str]:
    return amount_offered(volume.spec.capacity.get(STORAGE, "0")), volume.metadata.name


def _is_for(volume: PersistentVolume, uid: str) -> bool:
    """A volume may be kept for whatever claim has the name, or for one of these."""
    reference = volume.spec.claim_ref
    return reference is not None and reference.uid in {"", uid}


def _is_offered(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    selector, modes = claim.spec.selector, volume.spec.access_modes
    return (
        volume.status.phase == _AVAILABLE
        and _suits(claim, volume)
        and (selector is None or selector.matches(volume.metadata.labels))
        and all(mode in modes for mode in claim.spec.access_modes)
    )


def _suits(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    volume_claim_spec, persistent_volume_spec = claim.spec, volume.spec
    return (
        _order(volume)[0] >= _size(claim)
        and volume_claim_spec.volume_mode == persistent_volume_spec.volume_mode
        and volume_claim_spec.volume_attributes_class_name == persistent_volume_spec.volume_attributes_class_name
        and not volume.metadata.leaving
    )


def _size(claim: PersistentVolumeClaim) -> int:
    result: int = requested_amount(claim.spec.resources.requests.get(STORAGE, "0"))
    return result
