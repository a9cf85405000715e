"""Owner of observed claims, volumes and storage classes, by name, and of the requirements of each pod class."""

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

# --- Owner of the unclaimed volumes that suit equal claims, and of their number accessible from each row.
#
# Nearly every volume requires one label with certain values, so the few volumes that a node can access are found by the
# node's labels; all others are checked one by one.


class VolumeOffer:
    """Volumes, smallest first."""

    def __init__(self, volumes: Sequence[PersistentVolume]) -> None:
        self.volumes = volumes
        self._index = {each.metadata.name: number for number, each in enumerate(volumes)}
        self._by_label: dict[str, dict[str, list[int]]] = {}
        self._others: list[int] = []
        self._version = -1, -1  # of the rows, and their capacity
        self._counts: Counts = np.zeros(0, np.int64)
        self._left_out: set[str] = set()  # volumes that are taken and not counted
        for number, volume in enumerate(volumes):
            plain = plain_term(volume)
            if plain is None:
                self._others.append(number)
            else:
                by_value = self._by_label.setdefault(plain[0], defaultdict(list))
                for value in sorted(set(plain[1])):
                    by_value[value].append(number)

    def smallest(self, node: Node, taken: Container[str]) -> PersistentVolume | None:
        """The smallest volume that the node can access and that is not taken."""
        found = len(self.volumes)
        for numbers in self._near(node):
            for number in numbers:
                if number >= found:
                    break
                if self.volumes[number].metadata.name not in taken and reaches(node, self.volumes[number]):
                    found = number
        return self.volumes[found] if found < len(self.volumes) else None

    def counts(self, rows: NodeRows, taken: KeysView[str]) -> Counts:
        """The number of volumes, without taken ones, that each row can access. Must not be modified."""
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
            column = rows.column(key)  # called first: assigns numbers to the values that nodes have
            many = [len(by_value.get(value, ())) for value in rows.values(key)]
            of_value = np.array([*many, 0], np.int64)  # absent is -1, the last element
            result += of_value[column]
        for number in self._others:
            mask = reached(self.volumes[number], rows)
            result[slice(None) if mask is None else mask] += 1
        return result


class Alike(msgspec.Struct, frozen=True):
    """The properties of a claim that determine suitable volumes."""

    storage_class: str
    size: int
    volume_mode: str
    attributes_class: str
    access_modes: frozenset[str]
    selector: bytes


# Without one of these, pods with volume claims cannot be evaluated.
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
    """A part of a snapshot: `fleet.part(StorageIndex)`. `version` changes with any object."""

    def __init__(self, fleet: Snapshot) -> None:
        self.version = 0
        self.unread = ""
        self._observed: Observed | None = None
        self._seen: tuple[object, ...] = ()
        self._claims: dict[Key, PersistentVolumeClaim] = {}
        self._volumes: dict[str, PersistentVolume] = {}
        self._classes: dict[str, StorageClass] = {}
        self._tracking: frozenset[str] = frozenset()
        self._unclaimed: dict[str, list[PersistentVolume]] = {}  # by storage class, smallest first
        self._kept_for: dict[Key, list[PersistentVolume]] = {}
        self._offers: dict[Alike, VolumeOffer] = {}
        self._wanted: dict[PodClass, StorageRequirements] = {}

    def wanted(self, pod_class: PodClass, fleet: Snapshot) -> StorageRequirements:
        """The requirements of the class; the constant NOTHING if it has no volumes."""
        if not pod_class.pod.spec.volumes:
            return NOTHING
        self.renew(fleet)
        storage_requirements = self._wanted.get(pod_class)
        if storage_requirements is None:
            storage_requirements = self._wanted[pod_class] = wanted(pod_class.pod, self)
        return storage_requirements

    def renew(self, fleet: Snapshot) -> None:
        """Updates after changes of the observed objects."""
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
        """Whether a driver publishes its free capacity per node."""
        return driver in self._tracking

    def offer(self, claim: PersistentVolumeClaim) -> VolumeOffer:
        """Unreserved volumes that suit a claim; shared by all equal claims."""
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
        """A volume reserved for a claim that does not refer to it: no other volume is considered then."""
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
    """A volume may be reserved for any claim with the name, or for the claim with a uid."""
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
