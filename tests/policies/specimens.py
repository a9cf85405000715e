"""Specs made up from the shape of a kind, as plain data: the smallest, any that it allows, and some with one fault."""

import re
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as some
from hypothesis.strategies import DrawFn, SearchStrategy

from reconciler.model.quantity import Duration, Money, Percent, Quantity
from reconciler.policy.shape import (
    Choice,
    Flag,
    Kind,
    ListOf,
    MapOf,
    Measure,
    Measured,
    Object,
    Shape,
    WholeNumber,
    Words,
    bounded,
)

Plain = Any
POOLS = ("a100", "l4")
LONG = 3  # items at most in what is made up; more would only take longer

_SAMPLES: dict[Measure, str] = {Quantity: "40Gi", Duration: "1h30m", Percent: "85%", Money: "14.75"}
_MEASURES: dict[Measure, SearchStrategy[Plain]] = {
    Quantity: some.integers(0, 10**18 - 1) | some.from_regex(r"[1-9][0-9]{0,5}(\.[1-9])?(k|M|Ki|Gi)", fullmatch=True),
    Duration: some.from_regex(r"([0-9]{1,5}(\.[0-9])?(s|m)){1,3}", fullmatch=True),
    Percent: some.from_regex(r"[0-9]{1,2}(\.[0-9]{1,2})?%", fullmatch=True) | some.just("100%"),
    Money: some.from_regex(r"[0-9]{1,9}(\.[0-9]{1,6})?", fullmatch=True),
}
_TEXTS = (*POOLS, "A100", "team", "0 20 * * *", "9b3c6f0e-52d1-4c0a-9f5e-0d6f6a1c7e21", "10%", "2026-11-02T08:00:00Z")
_KEYS = ("cpu", "memory", "nvidia.com/gpu")


def smallest(shape: Shape) -> Plain:
    """The same each time: what must be there, and nothing else."""
    match shape:
        case Object():
            return {field.name: smallest(field.shape) for field in shape.fields if field.required}
        case ListOf(item=item):
            return [smallest(item)] * (shape.within.least or 0)
        case MapOf(value=value):
            return {key: smallest(value) for key in _some_keys(shape)[: shape.within.least or 0]}
        case WholeNumber(within=within):
            return within.least or 0
        case Flag():
            return False
        case Choice(values=values):
            return values[0]
        case Measured(measure=measure):
            return _SAMPLES[measure]
        case Words():
            return next(text for text in _TEXTS if _fits(shape, text))


def allowed(shape: Shape) -> SearchStrategy[Plain]:
    """Any value that the shape allows by itself, whatever the rules of its kind say."""
    match shape:
        case Object():
            required = {field.name: allowed(field.shape) for field in shape.fields if field.required}
            optional = {field.name: allowed(field.shape) for field in shape.fields if not field.required}
            return some.fixed_dictionaries(required, optional=optional)
        case ListOf(item=item, merge_key=keys):
            unique: Callable[[Plain], Plain] | None = (lambda each: tuple(each[key] for key in keys)) if keys else None
            return some.lists(allowed(item), min_size=shape.within.least or 0, max_size=LONG, unique_by=unique)
        case MapOf(value=value):
            names = some.sampled_from(_some_keys(shape))
            return some.dictionaries(names, allowed(value), min_size=shape.within.least or 0, max_size=LONG)
        case WholeNumber(within=within):
            return some.integers(within.least, within.most)
        case Flag():
            return some.booleans()
        case Choice(values=values):
            return some.sampled_from(values)
        case Measured(measure=measure, words=words):
            return _MEASURES[measure] | some.sampled_from(words) if words else _MEASURES[measure]
        case Words():
            return _texts(shape)


@some.composite
def faulty(draw: DrawFn, kind: Kind) -> Plain:
    """A spec that would be allowed but for one fault, which a schema can see."""
    spec = draw(allowed(kind.shape))
    shape, path = draw(some.sampled_from([(kind.shape, ()), *_places(kind.shape, spec, ())]))
    return _with(spec, path, draw(some.sampled_from(_faults(shape))))


def _texts(shape: Words) -> SearchStrategy[str]:
    if shape.refers:
        return some.sampled_from(POOLS)
    shaped, within = shape.shaped, bounded(shape)
    if not shaped:
        return some.text("abc /:.", min_size=within.least or 0, max_size=min(40, within.most or 40))
    ascii_texts = some.from_regex(shaped.pattern, fullmatch=True, alphabet=some.characters(codec="ascii"))
    return ascii_texts.filter(lambda text: "\n" not in text and _fits(shape, text))


def _fits(shape: Words, text: str) -> bool:
    shaped, within = shape.shaped, bounded(shape)
    long_enough = (within.least or 0) <= len(text) <= (within.most or 0)
    return long_enough and bool(not shaped or re.fullmatch(shaped.pattern, text))


def _some_keys(shape: MapOf) -> tuple[str, ...]:
    return shape.key.values if isinstance(shape.key, Choice) else _KEYS


def _faults(shape: Shape) -> tuple[Plain, ...]:
    """Values that look right and are not."""
    match shape:
        case WholeNumber(within=within):
            return (within.least or 0) - 1, (within.most or 0) + 1, "1", 1.5
        case Flag():
            return "true", 1
        case Choice():
            return "Nope", "", 1
        case Measured(measure=measure) if measure is Quantity:
            return -1, "-1", "1 Gi", "1GB", 10**18, True
        case Measured():
            return -1, 5, "5 minutes", "never", ""
        case Words(within=within, shaped=shaped):
            too_long = () if within.most is None else ("x" * (within.most + 1),)
            return 7, *too_long, *(("a b/c d/!",) if shaped else ())
        case ListOf():
            return "a", {}
        case MapOf(value=value):
            return "a", [], {"a key!": smallest(value)}
        case Object(fields=fields):
            return "a", [], *(({},) if any(field.required for field in fields) else ()), {"nope": 1}


def _places(shape: Shape, value: Plain, path: tuple[str | int, ...]) -> list[tuple[Shape, tuple[str | int, ...]]]:
    """Every value in a spec, itself left out."""
    inner: list[tuple[Shape, str | int]] = []
    match shape:
        case Object(fields=fields):
            inner = [(field.shape, field.name) for field in fields if field.name in value]
        case ListOf(item=item):
            inner = [(item, number) for number in range(len(value))]
        case MapOf(value=each):
            inner = [(each, key) for key in value]
    found = [(each, (*path, step)) for each, step in inner]
    return [*found, *(place for each, step in inner for place in _places(each, value[step], (*path, step)))]


def _with(value: Plain, path: tuple[str | int, ...], fault: Plain) -> Plain:
    """A copy with something else at the path."""
    if not path:
        return fault
    step, *rest = path
    inner = _with(value[step], tuple(rest), fault)
    if isinstance(value, dict):
        return {**value, step: inner}
    return [inner if number == step else each for number, each in enumerate(value)]
