"""The facts of a reason as a published format has them: objects by kind and name, times as RFC 3339."""

from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from reconciler.model.instant import Instant, timestamp
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan.action import Ref
from reconciler.model.plan.reason import Facts, Reason
from reconciler.plan.obstacle_words import obstacle_words
from reconciler.report.sentences import sentence


def facts_document(facts: Facts) -> dict[str, Any]:
    """By name; what a reason does not tell is left out."""
    return _fields(type(facts), facts.fields())


def _fields(of: Any, values: dict[str, Any]) -> dict[str, Any]:
    hints = _hints(of)
    return {name: _plain(value, hints.get(name)) for name, value in values.items() if value is not None}


def _plain(value: Any, hint: Any) -> Any:
    """`hint`: its type as declared; a moment is known by that alone."""
    if isinstance(value, Reason):
        return {"reason": value.code, "facts": facts_document(value.facts), "sentence": sentence(value)}
    if isinstance(value, Obstacle):
        return obstacle_words(value)
    if isinstance(value, tuple):
        of = next(iter(get_args(hint)), None)
        return [_plain(each, of) for each in value]
    if isinstance(value, msgspec.Struct) and not isinstance(value, Ref):
        return _fields(type(value), {name: getattr(value, name) for name in value.__struct_fields__})
    return timestamp(value) if _is_time(hint) else msgspec.to_builtins(value)


@cache
def _hints(of: Any) -> dict[str, Any]:
    return get_type_hints(of)


def _is_time(hint: Any) -> bool:
    if hint is Instant:
        return True
    return get_origin(hint) in {Union, UnionType} and Instant in get_args(hint)
