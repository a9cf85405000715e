"""Reasons for decisions that tests make up, and one of each code."""

from enum import Enum
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from reconciler.fleet.obstacles import NodeCordoned
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import CodeFacts, Facts, Obstacle, Reason, Ref
from reconciler.model.problem import Origin
from reconciler.plan.drain.codes.emptying import EvictedPodsStay
from reconciler.plan.reason_catalog import REASONS

POD = Ref("Pod", "x", "x")


class MadeUp(CodeFacts, frozen=True):
    """Facts of any code."""

    name: str = "Any"
    facts: tuple[tuple[str, str | int], ...] = ()

    @property
    def code(self) -> str:
        return self.name

    def fields(self) -> dict[str, Any]:
        return dict(self.facts)


def some_reason(code: str = "Any", origin: Origin | None = None, /, **facts: str | int) -> Reason:
    return Reason(MadeUp(code, tuple(sorted(facts.items()))), origin)


def reason_of(code: str, origin: Origin | None = None, /, **known: Any) -> Reason:
    """With a value for each of its facts."""
    declared = REASONS[code]
    made: Any = declared
    hints = get_type_hints(made)
    values = {each.name: known.get(each.name, _value_of(hints[each.name])) for each in msgspec.structs.fields(made)}
    return Reason(made(**values), origin)


def some_value(kind: Any) -> Any:
    """With a value for each of its fields."""
    return _value_of(kind)


def _value_of(hint: Any) -> Any:
    """Any value of the type."""
    if hint is Instant:
        return Instant(0)
    known = {str: "x", int: 1, bool: True, Ref: POD, Reason: Reason(EvictedPodsStay()), Obstacle: NodeCordoned()}
    if hint in known:
        return known[hint]
    if hint is Facts:
        return MadeUp()
    if get_origin(hint) is tuple:
        return tuple(_value_of(each) for each in get_args(hint) if each is not Ellipsis)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        hints = get_type_hints(hint)
        return hint(**{each.name: _value_of(hints[each.name]) for each in msgspec.structs.fields(hint)})
    if isinstance(hint, type) and issubclass(hint, Enum):
        return next(iter(hint))
    return get_args(hint)[0] if get_origin(hint) is Literal else _value_of(get_args(hint)[0])
