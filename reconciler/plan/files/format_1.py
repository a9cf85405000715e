"""Reads inputs that a version before typed facts wrote: dumps of format 1, and records of the history without a format.

Only hints hold reasons there, and hints may be lost at any time. What that version wrote about a reason is converted
where it fits the facts that its code has now; else the hint is dropped, and what would be told by it is found anew.
"""

from typing import Any, TypeVar, get_type_hints

import msgspec

from reconciler.model.plan.decision import CodeFacts, Facts, Reason, Ref
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.memory import FailedPlacement
from reconciler.plan.reason_catalog import REASONS, facts_of

T = TypeVar("T")


class _Reason(msgspec.Struct, frozen=True):
    code: str
    facts: tuple[tuple[str, str | int], ...] = ()


class _FailedSearch(msgspec.Struct, frozen=True):
    reason: _Reason


class Hints1(msgspec.Struct, frozen=True):
    """Of the hints, what was written about reasons."""

    tried: dict[str, _FailedSearch] = {}


class Inputs1(msgspec.Struct, frozen=True):
    """The same of inputs."""

    hints: Hints1 = Hints1()


class _Unconverted(CodeFacts, frozen=True):
    """Stands for facts of format 1 until they are converted."""


def decoded_1(content: bytes | bytearray | memoryview | msgspec.Raw, kind: type[T]) -> T:
    """What holds inputs, with reasons that have no facts yet. Raises msgspec.MsgspecError for what is no such value."""
    return msgspec.json.decode(content, type=kind, dec_hook=_without_facts)


def skimmed(content: bytes | bytearray | memoryview | msgspec.Raw, kind: type[T]) -> T | None:
    """What was written about reasons; None where nobody wrote that."""
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.MsgspecError:
        return None


def with_typed_hints(inputs: Inputs, written: Inputs1 | None) -> Inputs:
    """Inputs of `decoded_1`, with the facts of the hints that can be converted, and without all other hints."""
    known = written.hints.tried if written is not None else {}
    converted = ((node, _converted(tried, known.get(node))) for node, tried in inputs.hints.tried.items())
    kept = {node: tried for node, tried in converted if tried is not None}
    return msgspec.structs.replace(inputs, hints=msgspec.structs.replace(inputs.hints, tried=kept))


def _without_facts(kind: Any, plain: Any) -> Any:
    return _Unconverted() if kind is Facts and isinstance(plain, list) else facts_of(kind, plain)


def _converted(tried: FailedPlacement, written: _FailedSearch | None) -> FailedPlacement | None:
    facts = _facts(written.reason) if written is not None else None
    if facts is None:
        return None
    return msgspec.structs.replace(tried, reason=Reason(facts, tried.reason.origin))


def _facts(written: _Reason) -> Facts | None:
    declared = REASONS.get(written.code)
    if declared is None or not issubclass(declared, CodeFacts):
        return None
    hints = get_type_hints(declared)
    plain = {name: _plain(value, hints.get(name)) for name, value in written.facts}
    try:
        return msgspec.convert(plain | {"code": written.code}, declared, dec_hook=facts_of)
    except msgspec.ValidationError:
        return None


def _plain(value: str | int, hint: Any) -> Any:
    """An object was written as its title."""
    if hint is not Ref or not isinstance(value, str):
        return value
    kind, *place = value.split("/")
    return {"kind": kind, "namespace": "/".join(place[:-1]), "name": place[-1] if place else ""}
