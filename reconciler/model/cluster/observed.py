"""Observed: the cluster as last seen, always a little old; immutable, and honest about what could not be read."""

from collections.abc import Set as AbstractSet
from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.cluster.metadata import Lease, Namespace
from reconciler.model.cluster.node import CsiDriver, CsiNode, Node, NodeClaim, NodeClass, VolumeAttachment
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.refusal import SetAside
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.cluster.volumes import (
    PersistentVolume,
    PersistentVolumeClaim,
    ResourceClaim,
    ResourceSlice,
    StorageClass,
)
from reconciler.model.cluster.workload import PodDisruptionBudget, Workload
from reconciler.model.instant import Instant

# A watch that stands is told something of each kind once a minute, if only that nothing has changed.
QUIET_MS = 90_000


class Unread(msgspec.Struct, frozen=True, gc=False, order=True):
    """A kind that could not be read: none seen of it does not mean that there is none."""

    kind: str  # the title of a Seen: nodepools.karpenter.sh
    why: str


class Quiet(msgspec.Struct, frozen=True, gc=False, order=True):
    """A kind of which nothing has been heard for a while: what is seen of it counts, and may have changed."""

    kind: str  # the title of a Seen
    since: Instant


class Observed(msgspec.Struct, frozen=True, omit_defaults=True):
    """Objects by kind, in no particular order: whoever's outcome could show the order sorts what it walks."""

    cluster_uid: str = ""  # uid of the namespace kube-system
    own_namespace: str = names.OWN_NAMESPACE  # where the controller's Lease is, and the freeze of everything
    seen_at: Instant = Instant(0)  # of the kind that was seen longest ago
    unread: tuple[Unread, ...] = ()
    quiet: tuple[Quiet, ...] = ()
    absent: tuple[str, ...] = ()  # titles of kinds that the cluster does not serve: of these there are none
    set_aside: tuple[SetAside, ...] = ()  # objects that cannot be understood; below are what stands in their place
    nodes: tuple[Node, ...] = ()
    pods: tuple[Pod, ...] = ()
    budgets: tuple[PodDisruptionBudget, ...] = ()
    workloads: tuple[Workload, ...] = ()
    node_pools: tuple[Unstructured, ...] = ()
    node_claims: tuple[NodeClaim, ...] = ()
    node_classes: tuple[NodeClass, ...] = ()
    resource_claims: tuple[ResourceClaim, ...] = ()
    resource_slices: tuple[ResourceSlice, ...] = ()
    volume_claims: tuple[PersistentVolumeClaim, ...] = ()
    volumes: tuple[PersistentVolume, ...] = ()
    storage_classes: tuple[StorageClass, ...] = ()
    csi_nodes: tuple[CsiNode, ...] = ()
    csi_drivers: tuple[CsiDriver, ...] = ()
    attachments: tuple[VolumeAttachment, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    policies: tuple[Unstructured, ...] = ()
    leases: tuple[Lease, ...] = ()
    kept: tuple[Unstructured, ...] = ()

    def unread_among(self, *titles: str) -> Unread | None:
        """The first of the kinds that could not be read; None when all could."""
        return next((each for each in self.unread if each.kind in titles), None)

    def why_unread(self, *titles: str) -> str:
        """Why one of the kinds could not be read; nothing when all could."""
        unread = self.unread_among(*titles)
        return f"{unread.kind}: {unread.why}" if unread is not None else ""

    def quiet_among(self, *titles: str) -> Quiet | None:
        """The first of the kinds of which what is seen is old; None when none of them is."""
        return next((each for each in self.quiet if each.kind in titles), None)


# --- What is different between two Observed of one cluster, so that only that need be handed on or kept.
#
# Objects are told apart by identity: what a store saw no change of is the same object in both. So the cost of a
# difference is a walk over the kinds of which anything changed, and its size that of the changes.

Key = tuple[str, str, str, str]  # apiVersion and kind where an object has them, namespace, name

# All else of an Observed is told whole.
OBJECTS = tuple(
    field.name
    for field in msgspec.structs.fields(Observed)
    if field.name not in {"cluster_uid", "own_namespace", "seen_at", "unread", "quiet", "absent", "set_aside"}
)


class ObservedDelta(msgspec.Struct, frozen=True, omit_defaults=True):
    """Puts come in place of what has their key; in `put`, what is no object is as it is afterwards."""

    put: Observed
    gone: dict[str, tuple[Key, ...]] = {}  # by field


def difference(before: Observed, after: Observed) -> ObservedDelta:
    """What makes `after` of `before`."""
    put: dict[str, tuple[Any, ...]] = {}
    gone: dict[str, tuple[Key, ...]] = {}
    for field in OBJECTS:
        old, new = getattr(before, field), getattr(after, field)
        if old is new:
            put[field] = ()
            continue
        known, kept = set(map(id, old)), set(map(id, new))
        put[field] = tuple(each for each in new if id(each) not in known)
        left = {key_of(each) for each in old if id(each) not in kept} - {key_of(each) for each in put[field]}
        if left:
            gone[field] = tuple(sorted(left))
    return ObservedDelta(msgspec.structs.replace(after, **put), gone)


class Replica:
    """Owner of a copy of an Observed that follows by differences; what did not change stays the same object."""

    def __init__(self) -> None:
        self._observed = Observed()
        self._by_key: dict[str, dict[Key, Any]] = {field: {} for field in OBJECTS}

    @property
    def observed(self) -> Observed:
        return self._observed

    def take(self, change: ObservedDelta) -> Observed:
        """The copy as it is after the change."""
        if change == ObservedDelta(self._observed_without_objects()):
            return self._observed
        objects: dict[str, tuple[Any, ...]] = {}
        for field in OBJECTS:
            put, gone = getattr(change.put, field), change.gone.get(field, ())
            if not put and not gone:
                objects[field] = getattr(self._observed, field)
                continue
            known = self._by_key[field]
            for key in gone:
                known.pop(key, None)
            known.update((key_of(each), each) for each in put)
            objects[field] = tuple(known.values())
        self._observed = msgspec.structs.replace(change.put, **objects)
        return self._observed

    def _observed_without_objects(self) -> Observed:
        return msgspec.structs.replace(self._observed, **dict.fromkeys(OBJECTS, ()))


def key_of(each: Any) -> Key:
    """No two objects of one field share it."""
    metadata = each.metadata
    return getattr(each, "api_version", ""), getattr(each, "kind", ""), metadata.namespace, metadata.name


# --- Pods of which each new node has one like it: those of DaemonSets, and static pods.
#
# A pod may also say by an annotation, or by an owner reference, that it counts as one of a DaemonSet. That says
# something of its own node alone. Whoever may make pods could else have all new nodes taken for too small, and so keep
# the pods of others waiting.

DaemonSets = AbstractSet[tuple[str, str]]  # namespace and name

_TITLE = "daemonsets.apps"


def daemon_sets(observed: Observed) -> DaemonSets | None:
    """Those that are observed; None where they could not be read."""
    if observed.why_unread(_TITLE):
        return None
    metadatas = (each.metadata for each in observed.workloads if each.kind == "DaemonSet")
    return frozenset((each.namespace, each.name) for each in metadatas)


def comes_with_each_node(pod: Pod, known: DaemonSets | None) -> bool:
    """Whether each new node has such a pod. Where DaemonSets could not be read the pod is believed."""
    owner = pod.metadata.controller
    if owner is None or pod.is_finished:
        return False
    if owner.kind == "Node":
        return bool(pod.metadata.annotations.mirror_pod) and owner.name == pod.node
    return owner.kind == "DaemonSet" and (known is None or (pod.metadata.namespace, owner.name) in known)
