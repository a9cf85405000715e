"""What a GpuPool can say: asked of the very reader that will read it."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from reconciler.model.policy.gpu_pool import GpuPool
from reconciler.policy.read import read_spec
from reconciler.policy.rules.resources import resource_problems
from reconciler.policy.shape import describe
from reconciler.policy.tree import MapEntry, Mapping, Mark, Node, Scalar, Sequence

T = TypeVar("T")

_NOWHERE = Mark("", 0, 0)
_SMALLEST = {
    "devices": {"model": "a", "count": 1, "memory": "1Gi"},
    "instanceTypes": [{"name": "a"}],
    "nodeClassRef": {"group": "a", "kind": "A", "name": "a"},
}


def can_say(field: str, value: Any) -> bool:
    """Whether the field of a GpuPool's spec may have this value."""
    spec, problems = read_spec(describe(GpuPool), _node({**_SMALLEST, field: value}), _NOWHERE)
    return spec is not None and not problems and all(each.severity != "error" for each in resource_problems(spec))


def parted(items: Iterable[T], fits: Callable[[list[T]], bool]) -> tuple[list[T], list[T]]:
    """Those that fit beside each other, in order, and the others."""
    inside, outside = list(items), list[T]()
    if fits(inside):
        return inside, outside
    everything, inside = inside, []
    for item in everything:
        (inside if fits([*inside, item]) else outside).append(item)
    return inside, outside


def _node(value: Any) -> Node:
    match value:
        case dict():
            return Mapping({str(name): MapEntry(_scalar(name), _node(each)) for name, each in value.items()}, _NOWHERE)
        case list() | tuple():
            return Sequence(tuple(map(_node, value)), _NOWHERE)
    return _scalar(value)


def _scalar(value: Any) -> Scalar:
    return Scalar(value, str(value), _NOWHERE)
