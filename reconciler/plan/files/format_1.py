"""Reads inputs written before facts were typed: dumps of format 1, and history records without a format.

Only hints contain reasons there, and hints may be dropped at any time. Reasons are converted if they fit the present
facts of their code; other hints are dropped and recomputed.
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
    """Reasons in hints of format 1."""

    tried: dict[str, _FailedSearch] = {}


class Inputs1(msgspec.Struct, frozen=True):
    """Reasons in inputs of format 1."""

    hints: Hints1 = Hints1()


class _Unconverted(CodeFacts, frozen=True):
    """Placeholder for facts of format 1 before their conversion."""


def decoded_1(content: bytes | bytearray | memoryview | msgspec.Raw, kind: type[T]) -> T:
    """Decodes a value that contains inputs, with reasons without facts. Raises msgspec.MsgspecError if invalid."""
    return msgspec.json.decode(content, type=kind, dec_hook=_without_facts)


def skimmed(content: bytes | bytearray | memoryview | msgspec.Raw, kind: type[T]) -> T | None:
    """Decodes only reasons; None if there are none."""
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.MsgspecError:
        return None


def with_typed_hints(inputs: Inputs, written: Inputs1 | None) -> Inputs:
    """Inputs of `decoded_1`, with facts of hints that can be converted, and without the other hints."""
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
    """Objects were written as titles."""
    if hint is not Ref or not isinstance(value, str):
        return value
    kind, *place = value.split("/")
    return {"kind": kind, "namespace": "/".join(place[:-1]), "name": place[-1] if place else ""}
