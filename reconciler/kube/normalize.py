"""Normalizes unusual objects: nulls for empty values, numbers for quantities, and too deeply nested JSON."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.cluster.bounds import MOST_CONTAINERS, MOST_RESOURCES, why_refused
from reconciler.model.cluster.metadata import Annotations, LabelSelector, Metadata
from reconciler.model.cluster.node import Node, NodeClaim, NodeSpec, NodeStatus
from reconciler.model.cluster.pod import (
    Container,
    LocalObjectReference,
    NodeSelector,
    Pod,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from reconciler.model.cluster.refusal import TOO_DEEP
from reconciler.model.cluster.volumes import PersistentVolume, PersistentVolumeClaim, VolumeAffinity
from reconciler.model.cluster.workload import BudgetSpec, BudgetStatus, PodDisruptionBudget, Workload

_MOST_LEVELS = 200
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[{]|[\]}]', re.DOTALL)
_IN_PLACE = f'"{TOO_DEEP}"'.encode()

# Fields that map a resource to an amount.
_AMOUNTS = frozenset({"requests", "limits", "capacity", "allocatable", "overhead", "allocatedResources"})
_COUNT = "count"  # not a resource, but a driver's number of allocatable volumes


def without_nulls(value: object) -> object:
    """Removes nulls: Go treats null, an empty list and an absent field alike."""
    if isinstance(value, dict):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [without_nulls(each) for each in value if each is not None]
    return value


def loosened(value: object) -> object:
    """The value without nulls, and with all amounts as strings."""
    return _amounts_as_text(without_nulls(value))


def _amounts_as_text(value: object) -> object:
    if isinstance(value, list):
        return [_amounts_as_text(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: {name: amount if name == _COUNT else _text(amount) for name, amount in each.items()}
        if key in _AMOUNTS and isinstance(each, dict)
        else _amounts_as_text(each)
        for key, each in value.items()
    }


def _text(amount: object) -> object:
    is_number = isinstance(amount, int | float) and not isinstance(amount, bool)
    return str(amount) if is_number else amount


def shallow(raw: bytes) -> bytes:
    """The same JSON with TOO_DEEP in place of too deeply nested values. Not recursive."""
    parts: list[bytes] = []
    level, copied, cut_from = 0, 0, 0
    for token in _TOKEN.finditer(raw):
        sign = raw[token.start()]
        if sign in b"[{":
            level += 1
            if level == _MOST_LEVELS:
                cut_from = token.start()
        elif sign in b"]}":
            if level == _MOST_LEVELS:
                parts += [raw[copied:cut_from], _IN_PLACE]
                copied = token.end()
            level -= 1
    return b"".join((*parts, raw[copied:])) if parts else raw


# --- Stand-ins for objects that exceed a limit (reconciler/model/cluster/bounds.py).
#
# Long fields are dropped, and the stand-in has conservative values: a pod keeps its node busy, or, if unbound, requests
# no node; a node counts in its pool, is cordoned and left alone; a PodDisruptionBudget allows no disruption in its
# namespace.

_change = msgspec.structs.replace
_GATE = LocalObjectReference("gpu.scheduling/set-aside")
_KEPT_LABELS = frozenset(
    {names.KARPENTER_POOL, names.POOL, names.INSTANCE_TYPE, names.CAPACITY_TYPE, names.ZONE, names.HOSTNAME}
)
_FOREVER = "2999-01-01T00:00:00Z"
_ALL_OF_A_NODE = ResourceRequirements(requests={"cpu": "4Pi", "memory": "4Pi"})


def bounded(found: Any) -> Any:
    """The object, or its stand-in."""
    return found if why_refused(found) is None else _OVERSIZED_IN_PLACE[type(found)](found)


def _metadata(metadata: Metadata) -> Metadata:
    labels = {key: value for key, value in metadata.labels.items() if key in _KEPT_LABELS}
    owner = metadata.controller
    return _change(metadata, labels=labels, owner_references=() if owner is None else (owner,))


def _pod(pod: Pod) -> Pod:
    spec, owner = pod.spec, pod.metadata.controller
    is_daemons = owner is not None and owner.kind in {"DaemonSet", "Node"}
    metadata = _change(
        pod.metadata,
        labels={},
        annotations=Annotations(do_not_disrupt="true", safe_to_evict="false"),
        owner_references=() if owner is None or is_daemons else (owner,),
    )
    requested = sum(len(each.resources.requests) + len(each.resources.limits) for each in spec.containers)
    is_long = len(spec.containers) > MOST_CONTAINERS or requested > MOST_RESOURCES
    containers = tuple(Container(each.name, each.resources) for each in spec.containers)
    containers = (Container("all", _ALL_OF_A_NODE),) if is_long else containers
    gates = () if spec.node_name else (_GATE,)
    bare = PodSpec(spec.node_name, priority=spec.priority, containers=containers, scheduling_gates=gates)
    return Pod(metadata, bare, PodStatus(pod.status.phase, start_time=pod.status.start_time))


def _node(node: Node) -> Node:
    annotations = _change(node.metadata.annotations, frozen_until=_FOREVER, frozen_reason="node exceeds a size limit")
    metadata = _change(_metadata(node.metadata), annotations=annotations)
    allocatable = {each: node.status.allocatable[each] for each in _KEPT if each in node.status.allocatable}
    ready = tuple(each for each in node.status.conditions if each.type == "Ready")[:1]
    spec = NodeSpec(unschedulable=True, provider_id=node.spec.provider_id)
    return Node(metadata, spec, NodeStatus(allocatable, allocatable, ready))


_KEPT = ("cpu", "memory", "ephemeral-storage", "pods", names.NVIDIA_GPU)


def _node_claim(claim: NodeClaim) -> NodeClaim:
    status = _change(claim.status, conditions=(), capacity={}, allocatable={})
    return _change(claim, metadata=_metadata(claim.metadata), status=status)


def _budget(budget: PodDisruptionBudget) -> PodDisruptionBudget:
    spec = BudgetSpec(max_unavailable=0, selector=LabelSelector())
    return PodDisruptionBudget(_metadata(budget.metadata), spec, BudgetStatus(observed_generation=1, expected_pods=1))


def _volume(volume: PersistentVolume) -> PersistentVolume:
    """A volume that no node can access."""
    spec = _change(volume.spec, node_affinity=VolumeAffinity(NodeSelector()))
    return _change(volume, metadata=_metadata(volume.metadata), spec=spec)


def _volume_claim(claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    """A claim that is being deleted: no node is found for its pods."""
    metadata = _metadata(claim.metadata)
    metadata = _change(metadata, deletion_timestamp=metadata.deletion_timestamp or metadata.creation_timestamp or "0")
    return _change(claim, metadata=metadata, spec=_change(claim.spec, selector=None))


def _workload(workload: Workload) -> Workload:
    return _change(workload, metadata=_metadata(workload.metadata), spec=_change(workload.spec, template=None))


_OVERSIZED_IN_PLACE: Mapping[type, Callable[[Any], Any]] = {
    Pod: _pod,
    Node: _node,
    NodeClaim: _node_claim,
    PodDisruptionBudget: _budget,
    PersistentVolume: _volume,
    PersistentVolumeClaim: _volume_claim,
    Workload: _workload,
}
