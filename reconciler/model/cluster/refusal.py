"""Checks decoded objects: invalid quantities, oversized fields and unbounded JSON.

Each check is an entry in CHECKS, by the type of the object. A check is pure, and its cost is bounded by the size of the
object.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal

import msgspec

from reconciler.model.cluster import bounds
from reconciler.model.cluster.node import Node, NodeClaim, NodeClass, NodePoolSpec
from reconciler.model.cluster.pod import Container, ContainerStatus, Pod, ResourceRequirements
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.cluster.volumes import PersistentVolume, PersistentVolumeClaim
from reconciler.model.cluster.workload import Workload
from reconciler.model.parsers import is_object_name, why_no_object
from reconciler.model.quantity import billionths


def why_misshapen(spec: Any) -> str:
    """Where the spec of a NodePool violates the schema, in the words of msgspec; empty if it does not."""
    try:
        msgspec.convert(_without_nulls(spec), NodePoolSpec | None)
    except msgspec.ValidationError as fault:
        return str(fault)
    return ""


def _without_nulls(value: Any) -> Any:
    """Null means absent."""
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


# --- Objects that cannot be decoded: each is set aside with a reason, and planning continues with all others.
#
# If an object affects planning, a conservative stand-in replaces it and keeps the readable fields: a pod keeps its node
# busy and full, a node counts in its pool and is cordoned, a PodDisruptionBudget allows no disruption in its namespace.

# Malformed: a field has another type or structure than in Kubernetes. Quantity: an amount is not a Kubernetes quantity,
# or is out of bounds. Depth and Number: JSON that is nested too deeply, or a number beyond 64 bits. TooLarge: more
# terms, tolerations or labels than the limits in bounds.py.
Code = Literal["Malformed", "Quantity", "Depth", "Number", "TooLarge"]


ANY_POOL = "*"


class DecodeRefusal(msgspec.Struct, frozen=True, gc=False):
    """Why an object cannot be decoded."""

    code: Code
    field: str = ""  # spec.containers[0].resources.requests.cpu
    detail: str = ""

    @property
    def why(self) -> str:
        """spec.containers[0].resources.requests.cpu: 99999... is no quantity."""
        return ": ".join(part for part in (self.field, self.detail or self.code) if part)


class SetAside(msgspec.Struct, frozen=True, gc=False, order=True, omit_defaults=True):
    """An object that cannot be decoded."""

    kind: str
    namespace: str
    name: str  # empty if the name is unreadable as well
    uid: str = ""
    code: Code = "Malformed"
    field: str = ""
    detail: str = ""
    node: str = ""  # the node that the object is, runs on or refers to
    pool: str = ""  # the pool of the NodePool or policy; ANY_POOL: the object may belong to any pool

    @property
    def title(self) -> str:
        return "/".join(part for part in (self.kind, self.namespace, self.name or "(without a name)") if part)

    @property
    def refusal(self) -> DecodeRefusal:
        """The reason."""
        return DecodeRefusal(self.code, self.field, self.detail)


TOO_DEEP = "gpu.scheduling/nested-too-deeply"  # replaces JSON that is nested deeper than MOST_LEVELS
MOST_LEVELS = 64  # of an object that is kept whole
_LEAST_NUMBER, _MOST_NUMBER = -(2**63), 2**63 - 1
_LONGEST_TEXT = 40  # characters shown of a value

Amounts = Mapping[str, str]
Check = Callable[[Any], DecodeRefusal | None]


def why_refused(found: Any, kind: str) -> DecodeRefusal | None:
    """Why an object of the kind cannot be decoded; None if it can."""
    misnamed = _why_misnamed(found, kind)
    if misnamed is not None:
        return misnamed
    excess = bounds.why_refused(found)
    if excess is not None:
        field, count, most = excess
        return DecodeRefusal("TooLarge", field, f"has {count}, more than the limit of {most}")
    check = CHECKS.get(type(found))
    return None if check is None else check(found)


def _why_misnamed(found: Any, kind: str) -> DecodeRefusal | None:
    """A name that the API server would not accept must not become part of a plan."""
    metadata = found.metadata
    if why := why_no_object(kind, metadata.namespace, metadata.name):
        return DecodeRefusal("Malformed", "metadata", why)
    node = _named_node(found)
    if node and not is_object_name(node):
        field = "spec.nodeName" if isinstance(found, Pod) else "status.nodeName"
        return DecodeRefusal("Malformed", field, f"{printable_text(node)} is not a valid name of a Node")
    return None


def _named_node(found: Any) -> str:
    if isinstance(found, Pod):
        return found.spec.node_name
    return found.status.node_name if isinstance(found, NodeClaim) else ""


def printable_text(text: str) -> str:
    """The text in ASCII, cut to at most a line."""
    short = text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}... ({len(text)} characters)"
    return ascii(short)


def unreadable(amounts: Amounts) -> str | None:
    """The first resource whose amount cannot be read."""
    for name, text in amounts.items():
        if billionths(text) is None:
            return name
    return None


def _first(places: Iterable[tuple[str, Amounts]]) -> DecodeRefusal | None:
    for field, amounts in places:
        name = unreadable(amounts) if amounts else None
        if name is not None:
            return DecodeRefusal(
                "Quantity", f"{field}.{printable_text(name)[1:-1]}", f"{printable_text(amounts[name])} is no quantity"
            )
    return None


def _of_pod(pod: Pod) -> DecodeRefusal | None:
    spec, status = pod.spec, pod.status
    if _are_plain(spec.containers) and not spec.init_containers and not spec.overhead and spec.resources is None:
        given = (
            status.resources is not None or status.allocated_resources or any(map(_is_given, _container_statuses(pod)))
        )
        return _first(_of_status(pod)) if given else None
    return _first((*_of_spec(pod), *_of_status(pod)))


def _are_plain(containers: tuple[Container, ...]) -> bool:
    """Whether all amounts can be read. A fast check for every pod, which does not locate errors."""
    for each in containers:
        if unreadable(each.resources.requests) is not None or unreadable(each.resources.limits) is not None:
            return False
    return True


def _container_statuses(pod: Pod) -> tuple[ContainerStatus, ...]:
    return (*pod.status.container_statuses, *pod.status.init_container_statuses)


def _is_given(status: ContainerStatus) -> bool:
    return status.resources is not None or bool(status.allocated_resources)


def _of_resources(field: str, resources: ResourceRequirements | None) -> Iterator[tuple[str, Amounts]]:
    if resources is not None:
        yield f"{field}.requests", resources.requests
        yield f"{field}.limits", resources.limits


def _of_spec(pod: Pod) -> Iterator[tuple[str, Amounts]]:
    spec = pod.spec
    for field, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for number, each in enumerate(containers):
            yield from _of_resources(f"spec.{field}[{number}].resources", each.resources)
    yield from _of_resources("spec.resources", spec.resources)
    yield "spec.overhead", spec.overhead


def _of_status(pod: Pod) -> Iterator[tuple[str, Amounts]]:
    status = pod.status
    for number, each in enumerate(_container_statuses(pod)):
        yield from _of_resources(f"status.containerStatuses[{number}].resources", each.resources)
        yield f"status.containerStatuses[{number}].allocatedResources", each.allocated_resources
    yield from _of_resources("status.resources", status.resources)
    yield "status.allocatedResources", status.allocated_resources


def _of_node(found: Node | NodeClaim) -> DecodeRefusal | None:
    return _first((("status.allocatable", found.status.allocatable), ("status.capacity", found.status.capacity)))


def _of_workload(workload: Workload) -> DecodeRefusal | None:
    template = workload.spec.template
    if template is None or _are_plain(template.spec.containers):
        return None
    places = (
        place
        for number, each in enumerate(template.spec.containers)
        for place in _of_resources(f"spec.template.spec.containers[{number}].resources", each.resources)
    )
    return _first(places)


def _of_whole(whole: Unstructured) -> DecodeRefusal | None:
    for field, value in whole.rest.items():
        if refusal := why_unbounded(value, field):
            return refusal
    misshapen = why_misshapen(whole.rest.get("spec")) if whole.kind == "NodePool" else ""
    return DecodeRefusal("Malformed", "spec", misshapen) if misshapen else None


def why_unbounded(value: Any, field: str) -> DecodeRefusal | None:
    """Why JSON cannot be kept: its depth, or a number that cannot be encoded again. Not recursive."""
    left: list[tuple[Any, str, int]] = [(value, field, 1)]
    while left:
        found, place, level = left.pop()
        if level > MOST_LEVELS or found == TOO_DEEP:
            return DecodeRefusal("Depth", field, f"is nested deeper than {MOST_LEVELS} levels")
        if isinstance(found, dict):
            left += [(each, place, level + 1) for each in found.values()]
        elif isinstance(found, list):
            left += [(each, place, level + 1) for each in found]
        elif isinstance(found, int | float) and not _LEAST_NUMBER <= found <= _MOST_NUMBER:
            return DecodeRefusal("Number", place, "has a number beyond 64 bits")
    return None


CHECKS: Mapping[type, Check] = {
    Pod: _of_pod,
    Node: _of_node,
    NodeClaim: _of_node,
    NodeClass: lambda node_class: why_unbounded(node_class.spec, "spec"),
    PersistentVolumeClaim: lambda claim: _first(_of_resources("spec.resources", claim.spec.resources)),
    PersistentVolume: lambda volume: _first((("spec.capacity", volume.spec.capacity),)),
    Workload: _of_workload,
    Unstructured: _of_whole,
}
