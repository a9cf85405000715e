"""The structs of `model.policy` as shapes, for the reader, the JSON Schema, the CRDs and the reference."""

import types
import typing
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, assert_never, get_args, get_origin

import msgspec

from reconciler.model.fields import (
    LONGEST_NAME,
    NAME,
    NAME_OR_STAR,
    KeyPattern,
    MergeKey,
    Refers,
    Says,
    Shaped,
    Unit,
    Within,
)
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
    within: Within


class Flag(msgspec.Struct, frozen=True):
    """true or false."""


class Words(msgspec.Struct, frozen=True):
    within: Within
    shaped: Shaped | None
    refers: Refers | None


class Choice(msgspec.Struct, frozen=True):
    values: tuple[str, ...]


class Measured(msgspec.Struct, frozen=True):
    """A quantity, duration, percentage or amount of money; or one of some words instead."""

    measure: Measure
    words: tuple[str, ...] = ()


class ListOf(msgspec.Struct, frozen=True):
    item: "Shape"
    within: Within
    merge_key: tuple[str, ...]
    ordered: bool = False


class MapOf(msgspec.Struct, frozen=True):
    """A map with values of one shape; its keys match a form or come from a closed set."""

    key: KeyPattern | Choice
    value: "Shape"
    within: Within


class Field(msgspec.Struct, frozen=True):
    """A named part of an object."""

    name: str  # the name in YAML
    attribute: str  # the name in the struct
    shape: "Shape"
    sentence: str
    required: bool
    default: Any
    unit: str


class Object(msgspec.Struct, frozen=True):
    """Named fields, and the struct that holds them."""

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
    hints = typing.get_type_hints(kind, include_extras=True)
    sentence = (kind.__doc__ or kind.__name__).strip().splitlines()[0]  # python -OO strips docstrings
    fields = tuple(_field(each, hints[each.name]) for each in msgspec.structs.fields(kind))
    return Object(kind, sentence, fields)


def _field(info: Any, hint: Any) -> Field:
    marks = _marks(hint)
    says = _mark(marks, Says)
    if not says:
        raise TypeError(f"the field {info.name} has no description")
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
    """The shape of a type. `outer` are the annotations around the type, which override its own."""
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
    """An optional type has the shape of the type itself; a measure may be combined with words (duration or Never)."""
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


# --- Length bounds: the bound that a field declares, or a common default. Every list, map and string is bounded.
#
# The API server estimates the cost of CEL rules from the maximum size of an object, so one missing bound may exceed the
# cost limit of a rule elsewhere.

MOST_ITEMS = 100
LONGEST_TEXT = 512
LONGEST_MEASURE = 64


def bounded(shape: ListOf | MapOf | Words | Measured) -> Within:
    """Minimum and maximum number of items, entries or characters; the maximum is always set."""
    match shape:
        case ListOf():
            return _up_to(shape.within, MOST_ITEMS)
        case MapOf(key=Choice(values=values)):
            return _up_to(shape.within, len(values))
        case MapOf():
            return _up_to(shape.within, MOST_ITEMS)
        case Words(refers=None):
            return _up_to(shape.within, LONGEST_TEXT)
        case Words():
            return _up_to(shape.within, LONGEST_NAME)
        case Measured():
            return Within(most=LONGEST_MEASURE)
    assert_never(shape)


def _up_to(within: Within, most: int) -> Within:
    return within if within.most is not None else Within(within.least, most)


# --- A kind in Kubernetes: names, scope, columns and rules, in addition to the fields of `model.policy`.

GROUP = "gpu.scheduling"
VERSION = "v1"
API_VERSION = f"{GROUP}/{VERSION}"


class ValidationRule(msgspec.Struct, frozen=True):
    """A rule between fields of one object; the API server checks the same rule in CEL."""

    code: str
    at: str  # the field to change, below spec
    sentence: str  # may contain field names in braces
    remedy: str
    cel: str
    holds: Callable[[Any], bool]


class PrinterColumn(msgspec.Struct, frozen=True):
    """A column of `kubectl get`."""

    title: str
    type: str
    path: str


class Kind(msgspec.Struct, frozen=True):
    spec: type[msgspec.Struct]
    plural: str
    short: str
    columns: tuple[PrinterColumn, ...]
    rules: tuple[ValidationRule, ...] = ()
    namespaced: bool = False
    longest_name: int = LONGEST_NAME
    is_policy: bool = True  # written by the platform team; otherwise by users or agents
    report: type[msgspec.Struct] | None = None  # further fields of its status

    @property
    def name(self) -> str:
        return self.spec.__name__

    @property
    def shape(self) -> Object:
        return describe(self.spec)


READY = PrinterColumn("Ready", "string", ".status.conditions[?(@.type=='Ready')].status")
AGE = PrinterColumn("Age", "date", ".metadata.creationTimestamp")
MESSAGE = PrinterColumn("Message", "string", ".status.conditions[?(@.type=='Ready')].message")
OF_POLICIES = (READY, AGE, MESSAGE)


# --- Defaults of fields, as written in YAML.


def default_of(field: Field) -> Any | None:
    """The default as plain data; None if there is none. Of an object, only values that its fields do not default."""
    return None if field.default is None else plainly(field.shape, field.default)


def plainly(shape: Shape, value: Any) -> Any:
    """A struct as plain data, without fields that have their default."""
    return _plain(shape, value, in_item=False, writes_item_defaults=False)


def with_item_defaults(shape: Shape, value: Any) -> Any:
    """Like `plainly`, but objects inside lists have all their fields.

    The API server fills in the defaults of list items too, but the applier of a list owns each item completely: Argo
    CD's default diff would compare an item without defaults to an item with defaults and report a difference forever.
    Outside of lists, a field that is not applied stays free for other writers, for example `suspend`.
    """
    return _plain(shape, value, in_item=False, writes_item_defaults=True)


def _plain(shape: Shape, value: Any, in_item: bool, writes_item_defaults: bool) -> Any:
    match shape:
        case Object(fields=fields):
            held = [(field, getattr(value, field.attribute)) for field in fields]
            return {
                field.name: _plain(field.shape, own, in_item, writes_item_defaults)
                for field, own in held
                if own is not None and (in_item or field.required or own != field.default)
            }
        case ListOf(item=item):
            return [_plain(item, each, writes_item_defaults, writes_item_defaults) for each in value]
        case MapOf(value=inner):
            return {key: _plain(inner, each, in_item, writes_item_defaults) for key, each in value.items()}
        case Measured():
            return str(value)
        case _:
            return value
