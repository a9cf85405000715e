"""Environments: base and overlays by folder, merged by kind and name.

Maps merge, lists replace, null restores the default. A file below `overlays/NAME/` belongs to the environment NAME;
every other file belongs to base, and so to all of them.
"""

import itertools
from collections.abc import Iterable, Sequence

import msgspec

from reconciler.model.problem import Problem
from reconciler.policy.document import PolicyDocument
from reconciler.policy.tree import Mapping, Node, Scalar, problem

BASE = "base"
_OVERLAYS = "overlays"


class Layered(msgspec.Struct, frozen=True):
    """An object of one environment: its merged spec, and the documents it came from, base first."""

    document: PolicyDocument
    spec: Node | None
    layers: tuple[PolicyDocument, ...]
    in_base: bool

    @property
    def labels(self) -> tuple[tuple[str, str], ...]:
        """Of all layers; an overlay wins."""
        return tuple(sorted({key: value for layer in self.layers for key, value in layer.labels}.items()))

    @property
    def annotations(self) -> tuple[tuple[str, str], ...]:
        return tuple(sorted({key: value for layer in self.layers for key, value in layer.annotations}.items()))


def environment_of(path: str) -> str:
    """The environment a file belongs to."""
    parts = path.split("/")
    for folder, name in itertools.pairwise(parts[:-1]):
        if folder == _OVERLAYS:
            return name
    return BASE


def environments(paths: Iterable[str]) -> tuple[str, ...]:
    """Base, and then each overlay by name."""
    return BASE, *sorted({environment_of(path) for path in paths} - {BASE})


def layered(
    documents: Sequence[PolicyDocument], environment: str, *, by_field: bool = False
) -> tuple[list[Layered], list[Problem]]:
    """The objects of one environment, in the order of their names; and objects that one layer has twice."""
    layers: dict[tuple[str, str], list[PolicyDocument]] = {}
    problems = []
    for wanted in dict.fromkeys((BASE, environment)):
        seen: dict[tuple[str, str], PolicyDocument] = {}
        for document in documents:
            if environment_of(document.at.file) != wanted:
                continue
            key = document.kind.name, document.name
            if key in seen:
                first = seen[key].at
                text = f"{document.title} stands here again"
                place = first.file if by_field else f"{first.file}:{first.line}"
                remedy = f"it stands at {place}; take one of them out"
                problems.append(problem(document.named_at, "RC110", text, remedy))
                continue
            seen[key] = document
            layers.setdefault(key, []).append(document)
    return [_merged(stack) for _, stack in sorted(layers.items())], problems


def _merged(stack: list[PolicyDocument]) -> Layered:
    base, *overlays = stack
    spec = base.spec
    for overlay in overlays:
        if overlay.spec is not None:
            spec = overlay.spec if spec is None else merge(spec, overlay.spec)
    return Layered(base, spec, tuple(stack), environment_of(base.at.file) == BASE)


def merge(base: Node, over: Node) -> Node:
    """What `over` says, and below it what `base` says."""
    if not isinstance(base, Mapping) or not isinstance(over, Mapping):
        return over
    entries = dict(base.entries)
    for name, entry in over.entries.items():
        if isinstance(entry.value, Scalar) and entry.value.value is None:
            entries.pop(name, None)
        elif name in entries:
            merged = merge(entries[name].value, entry.value)
            entries[name] = msgspec.structs.replace(entry, value=merged)
        else:
            entries[name] = entry
    return Mapping(entries, base.at)
