"""Stand-ins for objects that are set aside: their readable fields, and conservative values for the rest.

Fields are decoded one by one, as strictly as ever; invalid ones are dropped. Then the stand-in takes the values that
are safe for others: see `_WORST`. Other kinds need no stand-in, since their absence is conservative: a pod whose volume
or claim is missing fits on no other node, and stays.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from types import UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import msgspec

from reconciler.kube.normalize import bounded, loosened
from reconciler.model import names
from reconciler.model.cluster.kinds import RESOURCE_KINDS, ResourceKind
from reconciler.model.cluster.metadata import Annotations, LabelSelector, Lease, Metadata, Namespace
from reconciler.model.cluster.node import Node, NodeClaim
from reconciler.model.cluster.pod import Container, Pod, ResourceRequirements
from reconciler.model.cluster.refusal import ANY_POOL, DecodeRefusal, SetAside
from reconciler.model.cluster.unstructured import Unstructured, UnstructuredMetadata, metadata_without_secrets
from reconciler.model.cluster.workload import BudgetSpec, BudgetStatus, PodDisruptionBudget, Workload
from reconciler.model.parsers import is_object_name, why_no_object
from reconciler.model.quantity import MOST, is_quantity

T = TypeVar("T")
Plain = Mapping[str, Any]

_FAULTS = (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError, OverflowError)
_ALL_OF_IT = str(MOST)
_MOST_LEVELS = 12  # nested structs
# Kinds that determine decisions for a pool, by name.
_OF_POOLS = frozenset({"NodePool", "GpuPool", "NodeProvisioner"})
_COUNTED = frozenset({"Node", "NodeClaim"})
_LABELS_OF_POOLS = (names.KARPENTER_POOL, names.POOL)
_OWNERS_OF_DAEMONS = frozenset({"DaemonSet", "Node"})


class StandIn(msgspec.Struct, frozen=True):
    """An object that is set aside."""

    metadata: Metadata  # name and version, as far as readable
    set_aside: SetAside
    object: Any | None = None  # the stand-in; None: there is none


def stand_in(resource_kind: ResourceKind, plain: Plain, refusal: DecodeRefusal) -> StandIn:
    """The stand-in of a refused object; `plain`: its JSON."""
    metadata = salvaged(plain.get("metadata"), Metadata) or Metadata("")
    if why_no_object(resource_kind.kind, metadata.namespace, metadata.name):
        metadata = Metadata("")
    found = bounded(_in_its_place(resource_kind, plain, refusal)) if metadata.name else None
    about = SetAside(
        kind=resource_kind.kind,
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        code=refusal.code,
        field=refusal.field,
        detail=refusal.detail,
        node=node if is_object_name(node := _node_of(resource_kind, plain, metadata)) else "",
        pool=_pool_of(resource_kind, plain, metadata),
    )
    return StandIn(metadata, about, found)


def parted(found: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[SetAside, ...]]:
    """Objects, with stand-ins for those that are set aside; and the list of the latter."""
    refused = tuple([each for each in found if isinstance(each, StandIn)])
    if not refused:
        return found, ()
    in_place = (each.object if isinstance(each, StandIn) else each for each in found)
    return tuple([each for each in in_place if each is not None]), tuple([each.set_aside for each in refused])


def each_once(set_asides: Iterable[SetAside]) -> tuple[SetAside, ...]:
    """Sorted, without duplicates: one object may be observed as two kinds."""
    return tuple(sorted({(each.kind, each.namespace, each.name): each for each in set_asides}.values()))


def salvaged(plain: Any, type: type[T], levels: int = _MOST_LEVELS) -> T | None:  # noqa: A002 - of a struct
    """The readable part of a struct; None if a required field is missing."""
    if not isinstance(plain, dict) or levels == 0:
        return None
    found = {}
    for name, key, kind, is_required in _fields(cast("Any", type)):
        value = _salvaged(plain[key], kind, levels) if key in plain else None
        if value is not None:
            found[name] = value
        elif is_required:
            return None
    return type(**found)


def _salvaged(plain: Any, kind: Any, levels: int) -> Any:
    try:
        return msgspec.convert(loosened(plain), kind)
    except _FAULTS:
        pass
    options = get_args(kind) if get_origin(kind) in {Union, UnionType} else (kind,)
    for each in options:
        if isinstance(each, type) and issubclass(each, msgspec.Struct):
            return salvaged(plain, each, levels - 1)
        parts = get_args(each)
        if get_origin(each) is tuple and isinstance(plain, list):
            items = (_salvaged(item, parts[0], levels - 1) for item in plain)
            return tuple(item for item in items if item is not None)
        if get_origin(each) is dict and isinstance(plain, dict) and parts == (str, str):
            return {key: text for key, text in plain.items() if isinstance(text, str)}
    return None


@cache
def _fields(kind: Any) -> tuple[tuple[str, str, Any, bool], ...]:
    hints = get_type_hints(kind, include_extras=True)
    return tuple(
        (each.name, each.encode_name, hints[each.name], each.required) for each in msgspec.structs.fields(kind)
    )


def know_fields() -> None:
    """Resolves the fields of all structs that may be salvaged, before several threads do."""
    left: list[Any] = [Metadata, UnstructuredMetadata, *(each.type for each in RESOURCE_KINDS)]
    known: set[Any] = set()
    while left:
        kind = left.pop()
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            if kind not in known:
                known.add(kind)
                left += [hint for _, _, hint, _ in _fields(kind)]
        else:
            left += get_args(kind)


def _in_its_place(resource_kind: ResourceKind, plain: Plain, refusal: DecodeRefusal) -> Any | None:
    if resource_kind.type is Unstructured:
        return _whole(resource_kind, plain)
    worst = _WORST.get(resource_kind.type)
    found = salvaged(plain, resource_kind.type) if worst is not None else None
    return worst(found, refusal) if worst is not None and found is not None else None


def _whole(resource_kind: ResourceKind, plain: Plain) -> Unstructured | None:
    """Only the identity of an unstructured object: it differs in every comparison, and nothing is done about it."""
    metadata = salvaged(plain.get("metadata"), UnstructuredMetadata)
    if metadata is None:
        return None
    version = plain.get("apiVersion")
    version = version if isinstance(version, str) else served_version(resource_kind)
    return Unstructured(version, resource_kind.kind, metadata_without_secrets(metadata))


def served_version(resource_kind: ResourceKind) -> str:
    """policy/v1, or v1 for the core group."""
    return "/".join(part for part in (resource_kind.group, resource_kind.version or "v1") if part)


def _pod(pod: Pod, refusal: DecodeRefusal) -> Pod | None:
    """On a node, the pod counts, is never moved, and leaves no room for others. Without a node, it requests nothing."""
    if not is_object_name(pod.spec.node_name):
        return None
    owners = tuple(each for each in pod.metadata.owner_references if each.kind not in _OWNERS_OF_DAEMONS)
    kept = Annotations(do_not_disrupt="true", safe_to_evict="false", claim=pod.metadata.annotations.claim)
    metadata = msgspec.structs.replace(pod.metadata, annotations=kept, owner_references=owners)
    spec = msgspec.structs.replace(
        pod.spec,
        containers=tuple(map(_all_of_container, pod.spec.containers)),
        init_containers=tuple(map(_all_of_container, pod.spec.init_containers)),
        overhead=_all_of(pod.spec.overhead),
        resources=None if pod.spec.resources is None else _all_of_resources(pod.spec.resources),
    )
    if refusal.code not in {"Quantity", "TooLarge"}:  # otherwise all amounts were read
        rest = Container(
            "unread", ResourceRequirements({"cpu": _ALL_OF_IT, "memory": _ALL_OF_IT, names.NVIDIA_GPU: _ALL_OF_IT})
        )
        spec = msgspec.structs.replace(spec, containers=(*spec.containers, rest))
    status = msgspec.structs.replace(
        pod.status, container_statuses=(), init_container_statuses=(), resources=None, allocated_resources={}
    )
    return msgspec.structs.replace(pod, metadata=metadata, spec=spec, status=status)


def _all_of_container(container: Container) -> Container:
    return msgspec.structs.replace(container, resources=_all_of_resources(container.resources))


def _all_of_resources(resources: ResourceRequirements) -> ResourceRequirements:
    return ResourceRequirements(_all_of(resources.requests), _all_of(resources.limits))


def _all_of(amounts: dict[str, str]) -> dict[str, str]:
    """Unreadable amounts become the maximum."""
    return {name: text if is_quantity(text) else _ALL_OF_IT for name, text in amounts.items()}


def _readable(amounts: dict[str, str]) -> dict[str, str]:
    return {name: text for name, text in amounts.items() if is_quantity(text)}


def _node(node: Node, _: DecodeRefusal) -> Node:
    """The node counts in its pool, accepts no pods, and is never removed."""
    annotations = msgspec.structs.replace(node.metadata.annotations, scale_down_disabled="true")
    status = msgspec.structs.replace(
        node.status, capacity=_readable(node.status.capacity), allocatable=_readable(node.status.allocatable)
    )
    return Node(
        msgspec.structs.replace(node.metadata, annotations=annotations),
        msgspec.structs.replace(node.spec, unschedulable=True),
        status,
    )


def _claim(claim: NodeClaim, _: DecodeRefusal) -> NodeClaim:
    node_name = claim.status.node_name
    status = msgspec.structs.replace(
        claim.status,
        node_name=node_name if is_object_name(node_name) else "",
        capacity=_readable(claim.status.capacity),
        allocatable=_readable(claim.status.allocatable),
    )
    return msgspec.structs.replace(claim, status=status)


def _budget(budget: PodDisruptionBudget, _: DecodeRefusal) -> PodDisruptionBudget:
    """Applies to every pod of its namespace, and allows no disruption."""
    return PodDisruptionBudget(budget.metadata, BudgetSpec(selector=LabelSelector()), BudgetStatus())


def _workload(workload: Workload, _: DecodeRefusal) -> Workload:
    """The workload exists, with unknown desired pods."""
    spec = msgspec.structs.replace(workload.spec, template=None)
    return msgspec.structs.replace(workload, spec=spec)


def _lease(lease: Lease, _: DecodeRefusal) -> Lease:
    """The Lease is held."""
    holder = lease.spec.holder_identity or "(cannot be read)"
    return msgspec.structs.replace(lease, spec=msgspec.structs.replace(lease.spec, holder_identity=holder))


def _namespace(namespace: Namespace, _: DecodeRefusal) -> Namespace:
    """reconciler's own namespace is frozen: whether it has a freeze cannot be read."""
    if namespace.name != names.OWN_NAMESPACE:
        return namespace
    frozen = msgspec.structs.replace(namespace.metadata.annotations, frozen_until="(cannot be read)")
    return Namespace(msgspec.structs.replace(namespace.metadata, annotations=frozen))


_WORST: Mapping[Any, Callable[[Any, DecodeRefusal], Any | None]] = {
    Pod: _pod,
    Node: _node,
    NodeClaim: _claim,
    PodDisruptionBudget: _budget,
    Workload: _workload,
    Lease: _lease,
    Namespace: _namespace,
}


def _pool_of(resource_kind: ResourceKind, plain: Plain, metadata: Metadata) -> str:
    """The pool of the NodePool or policy.

    An object without a name, or a node or NodeClaim with an unreadable label, may belong to any pool; the API server
    accepts none of these.
    """
    if not metadata.name:
        return ANY_POOL
    if resource_kind.kind in _COUNTED:
        about = plain.get("metadata")
        labels = about.get("labels") if isinstance(about, dict) else None
        if labels is not None and not isinstance(labels, dict):
            return ANY_POOL
        are_read = all(isinstance((labels or {}).get(key, ""), str) for key in _LABELS_OF_POOLS)
        return "" if are_read else ANY_POOL
    return metadata.name if resource_kind.kind in _OF_POOLS else ""


def _node_of(resource_kind: ResourceKind, plain: Plain, metadata: Metadata) -> str:
    """The node that the object is, runs on or refers to."""
    if resource_kind.kind in {"Node", "CSINode", "GpuNodeStatus"}:
        return metadata.name
    part = plain.get("status" if resource_kind.kind == "NodeClaim" else "spec")
    name = part.get("nodeName") if isinstance(part, dict) else None
    if isinstance(name, str) and resource_kind.kind in {"Pod", "NodeClaim", "VolumeAttachment", "ResourceSlice"}:
        return name
    owners = (each.name for each in metadata.owner_references if each.kind == "Node")
    return next(owners, "") if resource_kind.kind in {"Lease", "NodeClaim"} else ""
