"""Observed: a slightly stale, immutable snapshot of the cluster, which also lists the kinds that could not be read."""

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
    DeviceClass,
    PersistentVolume,
    PersistentVolumeClaim,
    ResourceClaim,
    ResourceSlice,
    StorageClass,
)
from reconciler.model.cluster.workload import PodDisruptionBudget, Workload
from reconciler.model.instant import Instant

# A healthy watch receives a message for each kind at least once a minute, if only a bookmark.
QUIET_MS = 90_000


class Unread(msgspec.Struct, frozen=True, gc=False, order=True):
    """A kind that could not be read: an empty list of its objects does not mean that there are none."""

    kind: str  # the title of a ResourceKind: nodepools.karpenter.sh
    why: str


class Quiet(msgspec.Struct, frozen=True, gc=False, order=True):
    """A kind whose watch has been silent for a while: its objects are used, but may be stale."""

    kind: str  # the title of a ResourceKind
    since: Instant


class Observed(msgspec.Struct, frozen=True, omit_defaults=True):
    """Objects by kind, in no particular order. Callers whose result depends on the order must sort."""

    cluster_uid: str = ""  # uid of the namespace kube-system
    own_namespace: str = names.OWN_NAMESPACE  # namespace of the controller's Lease and of the global freeze
    seen_at: Instant = Instant(0)  # time of the least recently updated kind
    unread: tuple[Unread, ...] = ()
    quiet: tuple[Quiet, ...] = ()
    absent: tuple[str, ...] = ()  # titles of kinds that the cluster does not serve: there are no such objects
    set_aside: tuple[SetAside, ...] = ()  # objects that could not be decoded; the fields below hold stand-ins
    nodes: tuple[Node, ...] = ()
    pods: tuple[Pod, ...] = ()
    budgets: tuple[PodDisruptionBudget, ...] = ()
    workloads: tuple[Workload, ...] = ()
    node_pools: tuple[Unstructured, ...] = ()
    node_claims: tuple[NodeClaim, ...] = ()
    node_classes: tuple[NodeClass, ...] = ()
    resource_claims: tuple[ResourceClaim, ...] = ()
    resource_slices: tuple[ResourceSlice, ...] = ()
    device_classes: tuple[DeviceClass, ...] = ()
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
        """The first of the kinds that could not be read; None if all could."""
        return next((each for each in self.unread if each.kind in titles), None)

    def why_unread(self, *titles: str) -> str:
        """Why one of the kinds could not be read; empty if all could."""
        unread = self.unread_among(*titles)
        return f"{unread.kind}: {unread.why}" if unread is not None else ""

    def quiet_among(self, *titles: str) -> Quiet | None:
        """The first of the kinds whose data is stale; None if none is."""
        return next((each for each in self.quiet if each.kind in titles), None)


# --- Differences between two Observed of one cluster, so that only changes are transferred or stored.
#
# Objects are compared by identity: an unchanged object is the same Python object in both. A difference costs a walk
# over the kinds with changes, and its size is that of the changes.

Key = tuple[str, str, str, str]  # apiVersion and kind (if the object has them), namespace, name

# All other fields of an Observed are transferred whole.
OBJECTS = tuple(
    field.name
    for field in msgspec.structs.fields(Observed)
    if field.name not in {"cluster_uid", "own_namespace", "seen_at", "unread", "quiet", "absent", "set_aside"}
)


class ObservedDelta(msgspec.Struct, frozen=True, omit_defaults=True):
    """`put` replaces objects with the same key; values in `put` that are not objects replace the field."""

    put: Observed
    gone: dict[str, tuple[Key, ...]] = {}  # by field


def difference(before: Observed, after: Observed) -> ObservedDelta:
    """The delta that transforms `before` into `after`."""
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
    """Owner of a copy of an Observed that is updated by deltas. Unchanged objects keep their identity."""

    def __init__(self) -> None:
        self._observed = Observed()
        self._by_key: dict[str, dict[Key, Any]] = {field: {} for field in OBJECTS}

    def take(self, change: ObservedDelta) -> Observed:
        """Applies the delta and returns the new copy."""
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
    """A key that is unique among the objects of a field."""
    metadata = each.metadata
    return getattr(each, "api_version", ""), getattr(each, "kind", ""), metadata.namespace, metadata.name


# --- Pods that each new node gets: pods of DaemonSets, and static pods.
#
# A pod may also declare by an annotation or an owner reference that it counts as a DaemonSet pod. The declaration holds
# for the pod's own node only. Otherwise anyone who can create pods could make all new nodes appear too small, and keep
# the pods of others pending.

DaemonSets = AbstractSet[tuple[str, str]]  # namespace and name

_TITLE = "daemonsets.apps"


def daemon_sets(observed: Observed) -> DaemonSets | None:
    """The observed DaemonSets; None if they could not be read."""
    if observed.why_unread(_TITLE):
        return None
    metadatas = (each.metadata for each in observed.workloads if each.kind == "DaemonSet")
    return frozenset((each.namespace, each.name) for each in metadatas)


def comes_with_each_node(pod: Pod, known: DaemonSets | None) -> bool:
    """Whether each new node gets such a pod. If DaemonSets could not be read, the pod's own declaration is trusted."""
    owner = pod.metadata.controller
    if owner is None or pod.is_finished:
        return False
    if owner.kind == "Node":
        return bool(pod.metadata.annotations.mirror_pod) and owner.name == pod.node
    return owner.kind == "DaemonSet" and (known is None or (pod.metadata.namespace, owner.name) in known)
