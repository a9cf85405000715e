"""Kinds taken apart: the structs of `model.kinds` as shapes that reader, schema, CRD and reference walk over."""

import types
import typing
from functools import cache
from typing import Any, TypeVar, get_args, get_origin

import msgspec

from reconciler.model.fields import NAME, NAME_OR_STAR, KeyPattern, MergeKey, Refers, Says, Shaped, Unit, Within
from reconciler.model.quantity import (
    DURATION_PATTERN,
    MONEY_PATTERN,
    PERCENT_PATTERN,
    QUANTITY_PATTERN,
    Duration,
    Money,
    Percent,
    Quantity,
)

Measure = type[Quantity] | type[Duration] | type[Percent] | type[Money]
PATTERNS: dict[Measure, str] = {
    Quantity: QUANTITY_PATTERN,
    Duration: DURATION_PATTERN,
    Percent: PERCENT_PATTERN,
    Money: MONEY_PATTERN,
}
T = TypeVar("T")
ANYWHERE = Within()


class WholeNumber(msgspec.Struct, frozen=True):
    """An integer."""

    within: Within


class Flag(msgspec.Struct, frozen=True):
    """true or false."""


class Words(msgspec.Struct, frozen=True):
    """A text."""

    within: Within
    shaped: Shaped | None
    refers: Refers | None


class Choice(msgspec.Struct, frozen=True):
    """One of some words."""

    values: tuple[str, ...]


class Measured(msgspec.Struct, frozen=True):
    """A quantity, duration, percentage or amount of money; or one of some words instead."""

    measure: Measure
    words: tuple[str, ...] = ()


class ListOf(msgspec.Struct, frozen=True):
    """A list of like items."""

    item: "Shape"
    within: Within
    merge_key: tuple[str, ...]
    ordered: bool = False


class MapOf(msgspec.Struct, frozen=True):
    """A map with keys of one form, or from a closed set, and like values."""

    key: KeyPattern | Choice
    value: "Shape"
    within: Within


class Field(msgspec.Struct, frozen=True):
    """A named part of an object."""

    name: str  # as people write it
    attribute: str  # as the struct calls it
    shape: "Shape"
    sentence: str
    required: bool
    default: Any
    unit: str


class Object(msgspec.Struct, frozen=True):
    """Named parts, and the struct that they become."""

    type: type[msgspec.Struct]
    sentence: str
    fields: tuple[Field, ...]

    @property
    def required(self) -> list[str]:
        """Names of the fields that have no default."""
        return [field.name for field in self.fields if field.required]


Shape = WholeNumber | Flag | Words | Choice | Measured | ListOf | MapOf | Object


@cache
def describe(kind: type[msgspec.Struct]) -> Object:
    """The shape of a struct."""
    hints = typing.get_type_hints(kind, include_extras=True)
    sentence = (kind.__doc__ or kind.__name__).strip().splitlines()[0]  # python -OO leaves docstrings out
    fields = tuple(_field(each, hints[each.name]) for each in msgspec.structs.fields(kind))
    return Object(kind, sentence, fields)


def _field(info: Any, hint: Any) -> Field:
    marks = _marks(hint)
    says = _mark(marks, Says)
    if not says:
        raise TypeError(f"the field {info.name} says no sentence")
    default = info.default_factory() if info.default_factory is not msgspec.NODEFAULT else info.default
    unit = _mark(marks, Unit)
    return Field(
        name=info.encode_name,
        attribute=info.name,
        shape=_shape(hint),
        sentence=says.sentence,
        required=default is msgspec.NODEFAULT,
        default=None if default is msgspec.NODEFAULT else default,
        unit=unit.name if unit else "",
    )


def _shape(hint: Any, outer: tuple[Any, ...] = ()) -> Shape:
    """The shape of a type; `outer` are the marks around it, which win over its own."""
    marks = outer + _marks(hint)
    if get_origin(hint) is typing.Annotated:
        return _shape(get_args(hint)[0], marks)
    within = _mark(marks, Within) or ANYWHERE
    origin = get_origin(hint)
    if origin in {types.UnionType, typing.Union}:
        return _union(hint, marks)
    if origin is typing.Literal:
        return Choice(get_args(hint))
    if origin is list:
        merge_key = _mark(marks, MergeKey)
        names, ordered = (merge_key.names, merge_key.ordered) if merge_key else ((), False)
        return ListOf(_shape(get_args(hint)[0]), within, names, ordered)
    if origin is dict:
        key, value = get_args(hint)
        keys = _mark(marks, KeyPattern)
        return MapOf(keys or typing.cast("Choice", _shape(key)), _shape(value), within)
    return _leaf(hint, marks, within)


def _leaf(hint: Any, marks: tuple[Any, ...], within: Within) -> Shape:
    if hint is int:
        return WholeNumber(within)
    if hint is bool:
        return Flag()
    if hint is str:
        refers = _mark(marks, Refers)
        named = (NAME_OR_STAR if refers.all_as_star else NAME) if refers else None
        return Words(within, _mark(marks, Shaped) or named, refers)
    if hint in PATTERNS:
        return Measured(hint)
    return describe(hint)


def _union(hint: Any, marks: tuple[Any, ...]) -> Shape:
    """What may be absent is its own type; a measure may stand beside words (a duration, or Never)."""
    members = [_shape(each, marks) for each in get_args(hint) if each is not types.NoneType]
    if len(members) == 1:
        return members[0]
    match members:
        case [Measured(measure=measure), Choice(values=values)]:
            return Measured(measure, values)
    raise TypeError(f"a field may be a measure or words, not {hint}")


def _marks(hint: Any) -> tuple[Any, ...]:
    return tuple(hint.__metadata__) if get_origin(hint) is typing.Annotated else ()


def _mark(marks: tuple[Any, ...], kind: type[T]) -> T | None:
    return next((mark for mark in marks if isinstance(mark, kind)), None)
