"""Parses a spec tree into the struct of its kind, and reports all problems with their positions.

The schema checks what a schema can express. Building the struct finds the rest: quantities and durations that are
too precise or too large, and items of a list with equal keys.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

import msgspec

from reconciler.model.fields import KeyPattern, Within
from reconciler.model.problem import Problem
from reconciler.model.quantity import OutOfRange
from reconciler.policy.json_schema import Keywords, object_schema_of
from reconciler.policy.shape import (
    Choice,
    Field,
    ListOf,
    MapOf,
    Measured,
    Object,
    Shape,
    WholeNumber,
    Words,
    bounded,
    describe,
)
from reconciler.policy.tree import (
    MOST_PROBLEMS,
    Mapping,
    Mark,
    Node,
    Path,
    Scalar,
    Sequence,
    describe_node,
    plain,
    problem,
    written,
)
from reconciler.policy.unreadable import UNREADABLE
from reconciler.policy.words import REPLACED_FIELDS, advice, did_you_mean, expected, how_many, meant, measure_advice

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator


class ReadSpec(msgspec.Struct, frozen=True):
    """The struct of a spec, if it has no problem, and all problems."""

    value: Any | None
    problems: list[Problem]
    readable: Any | None  # the struct with UNREADABLE for each field that could not be read; None if no map


def read_spec(shape: Object, node: Node | None, at: Mark) -> tuple[Any | None, list[Problem]]:
    """The struct of a spec. `at` is the position to report if the whole spec is missing."""
    spec = read_readable(shape, node, at)
    return spec.value, spec.problems


def read_readable(shape: Object, node: Node | None, at: Mark) -> ReadSpec:
    """The same, with what can be read of a spec with problems."""
    whole = node if node is not None else Mapping({}, at)
    unreadable = set[Path]()
    errors = _validator(shape.type).iter_errors(plain(whole))
    found = _problems(errors, _SchemaPlace(("spec",), shape, whole), unreadable)
    reader = _SpecReader(list(islice(found, MOST_PROBLEMS + 1)), unreadable)
    value = reader.value(shape, whole, ("spec",))
    is_whole = not reader.problems and not reader.doubtful
    return ReadSpec(value if is_whole else None, reader.problems, None if value is UNREADABLE else value)


class _SpecReader:
    """Owner of the problems of one spec."""

    def __init__(self, problems: list[Problem], unreadable: set[Path]) -> None:
        self.problems = problems
        self.doubtful = False
        self._unreadable = unreadable

    @property
    def _has_enough(self) -> bool:
        """Whether the maximum number of problems is reached."""
        return len(self.problems) > MOST_PROBLEMS

    def value(self, shape: Shape, node: Node, path: Path) -> Any:
        if self._has_enough or path in self._unreadable:
            return UNREADABLE
        match shape, node:
            case Object(), Mapping():
                return self._object(shape, node, path)
            case ListOf(), Sequence():
                return self._list(shape, node, path)
            case MapOf(), Mapping():
                return self._map(shape, node, path)
            case _, Scalar():
                return self._leaf(shape, node, path)
        raise TypeError(f"{written(path)} was not checked against its schema")

    def _object(self, shape: Object, node: Mapping, path: Path) -> Any:
        values: dict[str, Any] = {}
        # Any absent field may be the one that an unknown key was meant to be.
        has_unknown = not node.entries.keys() <= {field.name for field in shape.fields}
        for field in shape.fields:
            given = node.get(field.name)
            if given is not None and not (isinstance(given, Scalar) and given.value is None):
                values[field.attribute] = self.value(field.shape, given, (*path, field.name))
            elif field.required or has_unknown:
                values[field.attribute] = UNREADABLE
        return shape.type(**values)

    def _map(self, shape: MapOf, node: Mapping, path: Path) -> Any:
        values = {name: self.value(shape.value, each.value, (*path, name)) for name, each in node.entries.items()}
        return values if all(_is_key(shape.key, name) for name in values) else UNREADABLE

    def _list(self, shape: ListOf, node: Sequence, path: Path) -> Any:
        if shape.merge_key:
            self._check_distinct(shape.merge_key, node, path)
        return [self.value(shape.item, item, (*path, number)) for number, item in enumerate(node.items)]

    def _check_distinct(self, names: tuple[str, ...], node: Sequence, path: Path) -> None:
        seen: dict[str, int] = {}
        for number, item in enumerate(node.items):
            if not isinstance(item, Mapping) or self._has_enough:
                continue
            text = " and ".join(f"{name} {plain(cast('Node', item.get(name)))}" for name in names if item.get(name))
            if text in seen:
                at = written((*path, number))
                sentence = f"{at} has the same {text} as {written((*path, seen[text]))}"
                self.problems.append(problem(item.at, "RC108", sentence, "remove one of them", at))
            seen.setdefault(text, number)

    def _leaf(self, shape: Shape, node: Scalar, path: Path) -> Any:
        if node.doubtful:
            self.doubtful = True
            return UNREADABLE
        if not isinstance(shape, Measured) or node.value in shape.words:
            return node.value
        try:
            return shape.measure.parse(node.text)
        except ValueError:
            self.problems.append(measure_problem(shape, node, path))
            return UNREADABLE


def _is_key(key: KeyPattern | Choice, name: str) -> bool:
    return name in key.values if isinstance(key, Choice) else _pattern(key.pattern).fullmatch(name) is not None


# --- Checks specs against the published schema of their kind with `jsonschema`; each error becomes a Problem with its
# position.
#
# The schema equals the one in `schemas/`, but is built in memory from the same shape, so that installed packages have
# the schema too. Errors of `jsonschema` carry a path and a keyword: the path leads to the value, its shape and its
# mark; the keyword selects the message. Two keywords are stricter than in draft-07: a pattern must match the whole
# text, including a line break at the end, and 1.0 is not an integer.

_ANNOTATIONS = frozenset({"$comment", "default", "description", "patternErrorMessage"})
_UNITS: dict[type, str] = {Sequence: "item", Mapping: "entry", Scalar: "character"}


class _SchemaPlace(msgspec.Struct, frozen=True):
    """A value in a spec: its object field (if any), its shape and its node."""

    path: Path
    shape: Shape
    node: Node
    field: Field | None = None
    above: Node | None = None


@cache
def _validator(kind: type[msgspec.Struct]) -> "Validator":
    # Imported here: the import takes a tenth of a second, which commands without policies need not spend.
    from jsonschema import Draft4Validator, Draft7Validator, validators  # noqa: PLC0415

    extend: Any = validators.extend
    checker = extend(Draft7Validator, {"pattern": _has_form}, type_checker=Draft4Validator.TYPE_CHECKER)
    validator: Validator = checker(_without_annotations(object_schema_of(describe(kind))))
    return validator


def _without_annotations(schema: Keywords) -> Keywords:
    """Only the keywords that check something: `jsonschema` visits each keyword for each value."""
    kept = {name: value for name, value in schema.items() if name not in _ANNOTATIONS}
    for name in ("additionalProperties", "items", "propertyNames"):
        if isinstance(kept.get(name), dict):
            kept[name] = _without_annotations(kept[name])
    if "properties" in kept:
        kept["properties"] = {name: _without_annotations(part) for name, part in kept["properties"].items()}
    return kept


def _has_form(_validator: Any, pattern: str, value: Any, _schema: Any) -> Iterable["ValidationError"]:
    from jsonschema.exceptions import ValidationError  # noqa: PLC0415

    matches = not isinstance(value, str) or _pattern(pattern).fullmatch(value)
    return () if matches else (ValidationError(""),)


@cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text)


def _problems(errors: Iterable["ValidationError"], spec: _SchemaPlace, unreadable: set[Path]) -> Iterator[Problem]:
    """The errors as Problems. A value of the wrong type has no other problem; a doubtful value gets no second one."""
    whole = set[tuple[Path, str]]()  # errors of one keyword on one map become one problem
    for error in errors:
        place = _reached(spec, tuple(error.absolute_path))
        if isinstance(place.node, Scalar) and place.node.doubtful:
            continue
        if error.validator == "type":
            unreadable.add(place.path)
            yield _type_problem(place)
        elif error.validator in {"additionalProperties", "required"}:
            if (place.path, error.validator) not in whole:
                whole.add((place.path, error.validator))
                yield from (_missing if error.validator == "required" else _unknown)(place)
        elif place.path not in unreadable:
            found = list(_value_problems(error, place))
            yield from found
            # One problem for all errors of a value. A list or map of a wrong length has readable items.
            if found and isinstance(place.node, Scalar):
                unreadable.add(place.path)


def _reached(place: _SchemaPlace, steps: Path) -> _SchemaPlace:
    """The value at the end of some steps."""
    for step in steps:
        path = (*place.path, step)
        match place.shape, place.node:
            case Object(fields=fields), Mapping(entries=entries):
                field = next(each for each in fields if each.name == step)
                place = _SchemaPlace(path, field.shape, entries[str(step)].value, field, place.node)
            case MapOf(value=value), Mapping(entries=entries):
                place = _SchemaPlace(path, value, entries[str(step)].value)
            case ListOf(item=item), Sequence(items=items):
                place = _SchemaPlace(path, item, items[int(step)])
    return place


def _type_problem(place: _SchemaPlace) -> Problem:
    if place.field and place.field.required and place.above and plain(place.node) is None:
        return _lacks(place.path, place.field, place.above)  # the key has no value
    text = f"{written(place.path)}: expected {expected(place.shape)}, got {describe_node(place.node)}"
    return problem(place.node.at, "RC103", text, advice(place.shape, place.node, place.path), written(place.path))


def _missing(place: _SchemaPlace) -> Iterator[Problem]:
    if isinstance(place.shape, Object) and isinstance(place.node, Mapping):
        for field in place.shape.fields:
            if field.required and field.name not in place.node.entries:
                at = place.node.removed.get(field.name)
                path = (*place.path, field.name)
                yield _lacks(path, field, place.node) if at is None else _removed(path, field, at)


def _lacks(path: Path, field: Field, within: Node) -> Problem:
    text = f"{written(path)} is missing ({_within_a_sentence(field.sentence)})"
    return problem(within.at, "RC104", text, f"add {field.name}", written(path))


def _removed(path: Path, field: Field, at: Mark) -> Problem:
    """An overlay sets the required field to null."""
    text = f"{written(path)} is required, and null removes it: {_within_a_sentence(field.sentence)}"
    return problem(at, "RC104", text, f"write a value, or remove {field.name} from the overlay", written(path))


def _unknown(place: _SchemaPlace) -> Iterator[Problem]:
    """Keys that are not fields, or not among the keys that a map may have."""
    entries = place.node.entries if isinstance(place.node, Mapping) else {}
    match place.shape:
        case Object(fields=fields):
            names = [field.name for field in fields]
            for name, entry in entries.items():
                if name not in names:
                    text = f'unknown key "{name}"{did_you_mean(name, names)}'
                    remedy = REPLACED_FIELDS.get(name) or ("" if meant(name, names) else "remove it")
                    yield problem(entry.key.at, "RC107", text, remedy)
        case MapOf(key=Choice(values=values) as key):
            for name, entry in entries.items():
                if name not in values:
                    text = f'unknown key "{name}": expected {expected(key)}{did_you_mean(name, values)}'
                    yield problem(entry.key.at, "RC107", text)


def _value_problems(error: "ValidationError", place: _SchemaPlace) -> Iterator[Problem]:
    """A value of the right type that is out of bounds or of the wrong form, or has a key of the wrong form."""
    node = place.node
    match place.shape:
        case MapOf(key=key) if "propertyNames" in error.relative_schema_path and isinstance(node, Mapping):
            name = str(error.instance)
            words = expected(key) if isinstance(key, Choice) else key.words
            text = f'{written(place.path)}: expected {words}, got "{name}"'
            yield problem(node.entries[name].key.at, "RC106", text, field=written(place.path))
        case ListOf() | MapOf() as shape:
            count = len(node.entries) if isinstance(node, Mapping) else len(getattr(node, "items", ()))
            yield _out_of_bounds(bounded(shape), place, count)
        case Measured() as shape if isinstance(node, Scalar):
            yield measure_problem(shape, node, place.path)  # the expected form includes length and bounds
        case Choice(values=values) as shape if isinstance(node, Scalar):
            close = meant(node.text, values)
            text = f"{written(place.path)}: expected {expected(shape)}, got {describe_node(node)}"
            yield problem(node.at, "RC106", text, f"write {close}" if close else "", written(place.path))
        case WholeNumber() as shape if isinstance(node, Scalar):
            yield _integer_problem(shape, node, place.path)
        case Words() as shape if isinstance(node, Scalar):
            text = str(node.value)
            if shape.shaped and not _pattern(shape.shaped.pattern).fullmatch(text):
                # One problem for a value of the wrong form: the length of such a value says nothing.
                if error.validator == "pattern":
                    yield _form_problem(shape, node, place.path)
            else:
                yield _out_of_bounds(bounded(shape), place, len(text))
        case _:
            yield problem(node.at, "RC106", f"{written(place.path)}: {error.message}", field=written(place.path))


def _out_of_bounds(within: Within, place: _SchemaPlace, count: int) -> Problem:
    """Lists, maps and strings of a wrong length."""
    text = f"{written(place.path)}: expected {how_many(within, _UNITS[type(place.node)])}, got {count}"
    return problem(place.node.at, "RC105", text, field=written(place.path))


def _integer_problem(shape: WholeNumber, node: Scalar, path: Path) -> Problem:
    least, most = shape.within.least, shape.within.most
    is_too_small = least is not None and isinstance(node.value, int) and node.value < least
    text = f"{written(path)}: expected {expected(shape)}, got {node.text}"
    remedy = f"the nearest allowed value is {least if is_too_small else most}"
    return problem(node.at, "RC105", text, remedy, written(path))


def _form_problem(shape: Words, node: Scalar, path: Path) -> Problem:
    lower = str(node.value).lower()
    words = shape.shaped.words if shape.shaped else expected(shape)
    text = f"{written(path)}: expected {words}, got {describe_node(node)}"
    has_form = shape.shaped and _pattern(shape.shaped.pattern).fullmatch(lower)
    return problem(node.at, "RC106", text, f"write {lower}" if has_form else "", written(path))


def measure_problem(shape: Measured, node: Scalar, path: Path) -> Problem:
    """The problem of a value that is not a valid quantity, duration, percentage or amount of money."""
    text = f"expected {expected(shape)}, got {describe_node(node)}"
    try:
        shape.measure.parse(node.text)
    except OutOfRange as error:
        text = f"{node.text} {error}"
    except ValueError:
        pass
    return problem(node.at, "RC106", f"{written(path)}: {text}", measure_advice(shape, node.text), written(path))


def _within_a_sentence(sentence: str) -> str:
    """Lower-cases the first letter, unless it belongs to an acronym, and removes the full stop."""
    first = sentence[0] if sentence[1:2].isupper() else sentence[0].lower()
    return f"{first}{sentence[1:-1]}"
