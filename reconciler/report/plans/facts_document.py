"""The facts of a reason as a published format has them: objects by kind and name, times as RFC 3339."""

from functools import cache
from types import UnionType
from typing import Any, get_args, get_type_hints

import msgspec

from reconciler.model.instant import Instant, timestamp
from reconciler.model.planned.reason import Facts, Reason
from reconciler.plan.explain import sentence


def facts_document(facts: Facts) -> dict[str, Any]:
    """By name; what a reason does not tell is left out."""
    of: Any = type(facts)
    times = _times(of)
    return {
        name: timestamp(value) if name in times else _plain(value)
        for name, value in facts.fields().items()
        if value is not None
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Reason):
        return {"reason": value.code, "facts": facts_document(value.facts), "sentence": sentence(value)}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return msgspec.to_builtins(value)


@cache
def _times(kind: Any) -> frozenset[str]:
    """The fields that hold a moment."""
    return frozenset(name for name, hint in get_type_hints(kind).items() if _is_time(hint))


def _is_time(hint: Any) -> bool:
    return hint is Instant or (isinstance(hint, UnionType) and Instant in get_args(hint))
