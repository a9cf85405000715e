"""Volume requirements of a pod: bound volumes, unbound claims, or a reason why the pod fits nowhere."""

from collections.abc import Iterator
from typing import Protocol

import msgspec
import numpy as np

from reconciler.fleet.node_terms import readable, term_holds
from reconciler.fleet.obstacles import (
    InlineDisk,
    StorageCapacityTracked,
    VolumeClaimUnusable,
    VolumeGone,
    VolumeLost,
    VolumeNotBound,
    VolumeStoodInFor,
    VolumesUnread,
)
from reconciler.fleet.rows import ABSENT, Mask, NodeRows
from reconciler.fleet.term_masks import term_mask
from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import NodeTerm, Pod, Volume
from reconciler.model.cluster.volumes import (
    ONE_POD_ONLY,
    STORAGE,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from reconciler.model.plan.decision import Obstacle

Key = tuple[str, str]  # namespace and name of a claim
Held = tuple[str, str]  # driver, and the driver's volume handle

# CSI drivers that replace in-tree volume types and provisioners.
_STAND_INS = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
}


class StorageRequirements(msgspec.Struct, frozen=True):
    """The volume requirements of a pod."""

    nowhere: Obstacle | None = None  # why no node is suitable
    unmodelled: Obstacle | None = None  # why the requirements cannot be simulated
    bound: tuple[PersistentVolume, ...] = ()
    labelled: tuple[PersistentVolume, ...] = ()  # volumes whose labels matter: not those created for this pod alone
    unbound: tuple[PersistentVolumeClaim, ...] = ()
    alone: tuple[Key, ...] = ()  # ReadWriteOncePod claims
    held: tuple[Held, ...] = ()  # volumes that count against the node's limits


NOTHING = StorageRequirements()


class StorageLookup(Protocol):
    """Lookup of claims, volumes and storage classes by name."""

    unread: str

    def claim(self, key: Key) -> PersistentVolumeClaim | None: ...
    def volume(self, name: str) -> PersistentVolume | None: ...
    def storage_class(self, name: str) -> StorageClass | None: ...
    def tracks_room(self, driver: str) -> bool: ...


def claims_of(pod: Pod) -> list[Key]:
    """The claims that a pod names, without ephemeral ones."""
    named = (each.persistent_volume_claim for each in pod.spec.volumes)
    return sorted({(pod.metadata.namespace, each.claim_name) for each in named if each is not None})


def key_of(claim: PersistentVolumeClaim) -> Key:
    return claim.metadata.namespace, claim.metadata.name


def wanted(pod: Pod, store: StorageLookup) -> StorageRequirements:
    """The constant NOTHING if no volume restricts the pod."""
    volumes = pod.spec.volumes
    if store.unread and any(each.persistent_volume_claim or each.ephemeral for each in volumes):
        return StorageRequirements(unmodelled=VolumesUnread(store.unread))
    reading = _StorageReader(pod, store)
    for volume in volumes:
        reading.take(volume)
    storage_requirements = reading.result()
    return NOTHING if storage_requirements == NOTHING else storage_requirements


class _StorageReader:
    """Owner of the requirements found so far for one pod; the first reason of each kind is kept."""

    def __init__(self, pod: Pod, store: StorageLookup) -> None:
        self._pod = pod
        self._store = store
        self._nowhere: list[Obstacle] = []
        self._unmodelled: list[Obstacle] = []
        self._bound: list[PersistentVolume] = []
        self._labelled: list[PersistentVolume] = []
        self._unbound: dict[Key, PersistentVolumeClaim] = {}
        self._alone: set[Key] = set()
        self._held: set[Held] = set()

    def take(self, volume: Volume) -> None:
        if volume.is_inline:
            self._unmodelled.append(InlineDisk(volume.name))
        is_own = volume.persistent_volume_claim is None
        if is_own and volume.ephemeral is None:
            return
        about, named = self._pod.metadata, volume.persistent_volume_claim
        name = f"{about.name}-{volume.name}" if named is None else named.claim_name
        claim = self._store.claim((about.namespace, name))
        if claim is None:
            self._nowhere.append(VolumeClaimUnusable(f"{about.namespace}/{name}", "not made" if is_own else "absent"))
            return
        if why_not := _why_useless(claim, self._pod, is_own):
            self._nowhere.append(why_not)
        self._claimed(claim, is_own)

    def result(self) -> StorageRequirements:
        return StorageRequirements(
            nowhere=next(iter(self._nowhere), None),
            unmodelled=next(iter(self._unmodelled), None),
            bound=tuple(self._bound),
            labelled=tuple(self._labelled),
            unbound=tuple(self._unbound.values()),
            alone=tuple(sorted(self._alone)),
            held=tuple(sorted(self._held)),
        )

    def _claimed(self, claim: PersistentVolumeClaim, is_own: bool) -> None:
        if ONE_POD_ONLY in claim.spec.access_modes and not is_own:
            self._alone.add(key_of(claim))
        volume = self._store.volume(claim.spec.volume_name)
        self._hold(claim, volume)
        if not claim.is_bound:
            self._waiting(claim)
        elif volume is None:
            self._nowhere.append(VolumeGone(_name(claim), claim.spec.volume_name))
        else:
            self._bound.append(volume)
            if not is_own:
                self._labelled.append(volume)
            if volume.is_stood_in_for:
                self._unmodelled.append(VolumeStoodInFor(volume.metadata.name))

    def _waiting(self, claim: PersistentVolumeClaim) -> None:
        storage_class = self._store.storage_class(claim.storage_class)
        if storage_class is None or not storage_class.waits or claim.spec.volume_name:
            self._nowhere.append(VolumeNotBound(_name(claim)))
            return
        self._unbound[key_of(claim)] = claim
        provisioner = storage_class.provisioner
        if self._store.tracks_room(provisioner) and STORAGE in claim.spec.resources.requests:
            self._unmodelled.append(StorageCapacityTracked(_name(claim), provisioner))

    def _hold(self, claim: PersistentVolumeClaim, volume: PersistentVolume | None) -> None:
        """Adds a volume that counts against the driver's limit; a volume to be provisioned has no name yet."""
        if volume is None:
            storage_class = self._store.storage_class(claim.storage_class)
            provisioner = storage_class.provisioner if storage_class is not None else ""
            handle = f"-{claim.metadata.namespace}/{claim.metadata.name}"
            held = _STAND_INS.get(provisioner, provisioner), handle
        elif volume.spec.csi is not None:
            held = volume.spec.csi.driver, volume.spec.csi.volume_handle
        else:
            held = _driver_of(volume), volume.metadata.name
        if all(held):
            self._held.add(held)


def _why_useless(claim: PersistentVolumeClaim, pod: Pod, is_own: bool) -> Obstacle | None:
    if claim.status.phase == "Lost":
        return VolumeLost(_name(claim), claim.spec.volume_name)
    if claim.metadata.leaving:
        return VolumeClaimUnusable(_name(claim), "leaving")
    owner = claim.metadata.controller
    if is_own and (owner is None or owner.uid != pod.metadata.uid):
        return VolumeClaimUnusable(_name(claim), "of another pod")
    return None


def _name(claim: PersistentVolumeClaim) -> str:
    return "/".join(key_of(claim))


def _driver_of(volume: PersistentVolume) -> str:
    """The driver that replaces the in-tree type; empty if there is none."""
    spec = volume.spec
    kinds = {
        "kubernetes.io/aws-ebs": spec.aws_elastic_block_store,
        "kubernetes.io/azure-disk": spec.azure_disk,
        "kubernetes.io/cinder": spec.cinder,
        "kubernetes.io/gce-pd": spec.gce_persistent_disk,
        "kubernetes.io/portworx-volume": spec.portworx_volume,
    }
    return next((_STAND_INS[kind] for kind, source in kinds.items() if source is not None), "")


# --- Where a volume is accessible: its node affinity, and its zone and region labels.
#
# The scheduler evaluates a volume's affinity on a node without a name, so terms on node names are ignored. Zone labels
# of volumes predate volume affinity; a node without any zone or region label satisfies them.

_NOW = {names.ZONE_BEFORE: names.ZONE, names.REGION_BEFORE: names.REGION}
_PLACES = (names.ZONE_BEFORE, names.REGION_BEFORE, names.ZONE, names.REGION)
_BETWEEN = "__"  # separates several zones of one volume


def reaches(node: Node, volume: PersistentVolume) -> bool:
    """Whether a node satisfies a volume's affinity."""
    terms = _terms(volume)
    return terms is None or any(term_holds(each, node) for each in terms)


def reached(volume: PersistentVolume, rows: NodeRows) -> Mask | None:
    """Like `reaches`, for all rows; None: everywhere."""
    terms = _terms(volume)
    if terms is None:
        return None
    mask: Mask = np.zeros(rows.capacity, bool)
    for each in terms:
        mask |= term_mask(each, rows)
    return mask


def plain_term(volume: PersistentVolume) -> tuple[str, tuple[str, ...]] | None:
    """The single label that a volume requires, with its values; None for any other affinity."""
    terms = _terms(volume)
    if terms is None or len(terms) != 1 or len(terms[0].match_expressions) != 1:
        return None
    (node_expression,) = terms[0].match_expressions
    return (node_expression.key, node_expression.values) if node_expression.operator == "In" else None


def agrees(node: Node, volume: PersistentVolume) -> bool:
    """Whether a node is in the zones and regions of a volume's labels."""
    labels = node.metadata.labels
    if not any(key in labels for key in _PLACES):
        return True
    return all(labels.get(key, labels.get(_NOW.get(key, key))) in zones for key, zones in _zones(volume))


def agreed(volume: PersistentVolume, rows: NodeRows) -> Mask | None:
    """Like `agrees`, for all rows; None: everywhere."""
    asked = list(_zones(volume))
    if not asked:
        return None
    mask: Mask = np.ones(rows.capacity, bool)
    for key, zones in asked:
        own, now = rows.column(key), _NOW.get(key, key)
        matches = np.isin(own, [rows.value_id(key, zone) for zone in sorted(zones)])
        instead = np.isin(rows.column(now), [rows.value_id(now, zone) for zone in sorted(zones)])
        mask &= np.where(own != ABSENT, matches, instead)
    has_none: Mask = np.ones(rows.capacity, bool)
    for key in _PLACES:
        has_none &= rows.column(key) == ABSENT
    return mask | has_none


def allows(storage_class: StorageClass, node: Node) -> bool:
    """Whether a storage class may provision a volume for a node."""
    labels = node.metadata.labels
    terms = storage_class.allowed_topologies
    requested = [term.match_label_expressions for term in terms if term.match_label_expressions]
    return not terms or any(all(labels.get(each.key) in each.values for each in one) for one in requested)


def allowed(storage_class: StorageClass, rows: NodeRows) -> Mask | None:
    """Like `allows`, for all rows; None: everywhere."""
    if not storage_class.allowed_topologies:
        return None
    mask: Mask = np.zeros(rows.capacity, bool)
    for term in storage_class.allowed_topologies:
        if term.match_label_expressions:
            one: Mask = np.ones(rows.capacity, bool)
            for each in term.match_label_expressions:
                one &= np.isin(rows.column(each.key), [rows.value_id(each.key, value) for value in each.values])
            mask |= one
    return mask


def _terms(volume: PersistentVolume) -> list[NodeTerm] | None:
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return None
    terms = [each for each in affinity.required.node_selector_terms if readable(each)]
    return [msgspec.structs.replace(each, match_fields=()) if each.match_fields else each for each in terms]


def _zones(volume: PersistentVolume) -> Iterator[tuple[str, frozenset[str]]]:
    """Zone and region requirements from the volume's labels; unreadable labels require nothing."""
    labels = volume.metadata.labels
    for key in _PLACES:
        if key in labels:
            zones = [each.strip() for each in labels[key].split(_BETWEEN)]
            if all(zones):
                yield key, frozenset(zones)
