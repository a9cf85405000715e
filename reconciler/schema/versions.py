"""Versions of a kind: documents of one are read as another through conversions, each a pure function on plain data.

A conversion goes one step, from one version to the next or back. A chain of them is found by itself: the shortest. What
an older version has no field for, a conversion back keeps in an annotation, so that there and back again loses nothing.
"""

import copy
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from reconciler.policy.kind import GROUP

Document = dict[str, Any]


class Conversion(msgspec.Struct, frozen=True):
    """One step. `convert` is given a document of its own, which it may change; its apiVersion is set afterwards."""

    kind: str
    from_version: str
    to_version: str
    convert: Callable[[Document], Document]


class NoConversion(ValueError):
    """No chain of conversions leads to the version that is wanted."""


# Every kind has one version so far.
CONVERSIONS: tuple[Conversion, ...] = ()


def convert(document: Mapping[str, Any], conversions: Iterable[Conversion], target: str) -> Document:
    """The same object in the version `target`, such as v2; raises NoConversion. The document itself is left alone."""
    kind, version = str(document.get("kind")), str(document.get("apiVersion")).removeprefix(f"{GROUP}/")
    steps = tuple(step for step in conversions if step.kind == kind)
    chain = _chain(steps, version, target)
    if chain is None:
        known = " or ".join(readable(kind, steps, target))
        raise NoConversion(f"{kind} can't be read from version {version} as {target}: write it in {known}")
    converted = copy.deepcopy(dict(document))
    for step in chain:
        converted = {**step.convert(converted), "apiVersion": f"{GROUP}/{step.to_version}"}
    return converted


def readable(kind: str, conversions: Iterable[Conversion], target: str) -> tuple[str, ...]:
    """The versions of a kind that can be read as `target`, itself among them."""
    steps = tuple(step for step in conversions if step.kind == kind)
    found, before = {target}, set[str]()
    while found != before:
        before = set(found)
        found |= {step.from_version for step in steps if step.to_version in found}
    return tuple(sorted(found))


def _chain(steps: tuple[Conversion, ...], version: str, target: str) -> tuple[Conversion, ...] | None:
    """The fewest steps between two versions; of chains of one length, the one declared first."""
    reached = {version}
    waiting: deque[tuple[str, tuple[Conversion, ...]]] = deque([(version, ())])
    while waiting:
        at, chain = waiting.popleft()
        if at == target:
            return chain
        for step in steps:
            if step.from_version == at and step.to_version not in reached:
                reached.add(step.to_version)
                waiting.append((step.to_version, (*chain, step)))
    return None
