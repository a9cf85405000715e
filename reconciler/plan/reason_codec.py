"""Reads what holds reasons: of each code, the class of its facts."""

from typing import Any, TypeVar

import msgspec

from reconciler.model.plan.reason import CodeFacts, Facts
from reconciler.plan.sentences import REASONS

T = TypeVar("T")


def decoded(content: bytes | bytearray | memoryview | msgspec.Raw, kind: type[T]) -> T:
    """Raises msgspec.MsgspecError for what is no such value, a reason of an unknown code among it."""
    return msgspec.json.decode(content, type=kind, dec_hook=facts_of)


def facts_of(kind: Any, plain: Any) -> Any:
    """For a decoder of msgspec: the facts of a reason."""
    if kind is not Facts:
        raise TypeError(f"no reader of {kind}")
    code = plain.get("code") if isinstance(plain, dict) else None
    declared = REASONS.get(code) if isinstance(code, str) else None
    if declared is None:
        raise ValueError(f"{code!r} is no code of a reason")
    if not issubclass(declared, CodeFacts):
        raise TypeError(declared)
    return msgspec.convert(plain, declared, dec_hook=facts_of)
