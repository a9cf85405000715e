"""Checks plain data against a structural schema, the way the API server does with custom resources.

Theory of operation. First defaults are filled in, as there. Then each value is held against its part of the schema from
the outside in; where nothing is wrong with a value and all that is in it, its rules in CEL are asked. A field that the
schema does not know is a violation: the API server would drop it without a word.
"""

import copy
import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import msgspec

from reconciler.policy.manifests.cel_rules import Rule, broken, compiled, matches
from reconciler.policy.tree import Path
from reconciler.policy.words import did_you_mean, meant

SCHEMA, RULE = "RC412", "RC413"

Schema = Mapping[str, Any]


class Violation(msgspec.Struct, frozen=True):
    """One value that is refused."""

    path: Path
    code: str
    sentence: str
    remedy: str = ""


_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "object": ((dict,), "a map"),
    "array": ((list,), "a list"),
    "string": ((str,), "a text"),
    "integer": ((int,), "an integer"),
    "number": ((int, float), "a number"),
    "boolean": ((bool,), "true or false"),
}
_BITS = {"int32": 32, "int64": 64}
_LONGEST = 40  # characters of a value in a sentence
MOST_VIOLATIONS = 50


class Structural:
    """A schema with its rules, compiled once."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._rules: dict[int, tuple[Rule, ...]] = {}  # by the identity of their part of the schema, which we hold
        self.unjudged: tuple[str, ...] = ()  # messages of rules that only the API server can judge
        self._compile(schema)

    def violations(self, value: Any) -> list[Violation]:
        """What the API server would refuse, and what it would drop; the first of them, if there are very many."""
        return list(islice(self._found(self._schema, filled(self._schema, value), ()), MOST_VIOLATIONS))

    def _compile(self, part: Any) -> None:
        if isinstance(part, Mapping):
            if validations := part.get("x-kubernetes-validations"):
                self._rules[id(part)], unjudged = compiled(validations)
                self.unjudged += unjudged
            for each in part.values():
                self._compile(each)
        elif isinstance(part, list):
            for each in part:
                self._compile(each)

    def _found(self, schema: Schema, value: Any, path: Path) -> Iterator[Violation]:
        wrong = False
        for violation in _of_itself(schema, value, path):
            wrong = True
            yield violation
        for name, part, inner in () if wrong else _inside(schema, value):
            for violation in self._found(part, inner, (*path, name)):
                wrong = True
                yield violation
        if not wrong and (rules := self._rules.get(id(schema))):
            for breach in broken(rules, value):
                told = f"breaks a rule of Karpenter's: {breach.message}"
                told = f"is {_shown(value)}, which {told}" if isinstance(value, str | int | float) else told
                yield Violation(path + breach.item, RULE, told)


def filled(schema: Schema, value: Any) -> Any:
    """A copy with the schema's defaults where a field is absent."""
    if isinstance(value, dict):
        fields: Schema = schema.get("properties", {})
        absent = [name for name in sorted(fields) if value.get(name) is None and "default" in fields[name]]
        value = value | {name: copy.deepcopy(fields[name]["default"]) for name in absent}
        parts = {name: part for name, part, _ in _inside(schema, value)}
        return {name: filled(parts[name], each) if name in parts else each for name, each in value.items()}
    if isinstance(value, list) and "items" in schema:
        return [filled(schema["items"], each) for each in value]
    return value


def _inside(schema: Schema, value: Any) -> Iterator[tuple[str | int, Schema, Any]]:
    """The values in a value, each with its part of the schema."""
    if isinstance(value, list) and "items" in schema:
        for number, each in enumerate(value):
            yield number, schema["items"], each
    if isinstance(value, dict):
        others = schema.get("additionalProperties")
        for name, each in value.items():
            part = schema.get("properties", {}).get(name, others)
            if isinstance(part, Mapping):
                yield name, part, each


def _of_itself(schema: Schema, value: Any, path: Path) -> Iterator[Violation]:
    """What is wrong with a value, not with what is in it."""
    if value is None:
        if not schema.get("nullable"):
            yield Violation(path, SCHEMA, "is null", "leave the field out, or give it a value")
        return
    if wrong := _wrong_type(schema, value):
        remedy = f'write "{_shown(value)}", with quotes' if wrong == "a text" and isinstance(value, int | float) else ""
        yield Violation(path, SCHEMA, f"must be {wrong}, and is {_shown(value)}", remedy)
        return
    if "enum" in schema and value not in schema["enum"]:
        known = [str(each) for each in schema["enum"]]
        hint = did_you_mean(value, known) if isinstance(value, str) else ""
        yield Violation(path, SCHEMA, f"is {_shown(value)}{hint}", f"write one of {', '.join(known)}")
    for sentence in (*_out_of_bounds(schema, value), *_of_combinations(schema, value)):
        yield Violation(path, SCHEMA, sentence)
    if isinstance(value, dict):
        yield from _wrong_fields(schema, value, path)


def _wrong_type(schema: Schema, value: Any) -> str:
    """What was expected instead."""
    if schema.get("x-kubernetes-int-or-string"):
        return "" if isinstance(value, int | str) and not isinstance(value, bool) else "an integer or a text"
    if "type" not in schema:
        return ""
    types, words = _TYPES[schema["type"]]
    # To Python, true is a number.
    return "" if isinstance(value, types) and (bool in types or not isinstance(value, bool)) else words


def _out_of_bounds(schema: Schema, value: Any) -> Iterator[str]:
    """Sentences about size, form and repetition."""
    if isinstance(value, str):
        yield from _sizes(schema, "Length", len(value), "characters")
        if "pattern" in schema and not matches(schema["pattern"], value):
            yield f"is {_shown(value)}, which does not match {schema['pattern']}"
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _of_number(schema, value)
    elif isinstance(value, list):
        yield from _sizes(schema, "Items", len(value), "items")
        yield from _repeated(schema, value)
    elif isinstance(value, dict):
        yield from _sizes(schema, "Properties", len(value), "entries")


def _sizes(schema: Schema, what: str, size: int, unit: str) -> Iterator[str]:
    if size < schema.get(f"min{what}", size):
        yield f"has {size} {unit}, fewer than {schema[f'min{what}']}"
    if size > schema.get(f"max{what}", size):
        yield f"has {size} {unit}, more than {schema[f'max{what}']}"


def _of_number(schema: Schema, value: float) -> Iterator[str]:
    least, most = schema.get("minimum", value), schema.get("maximum", value)
    if value < least or (value == least and schema.get("exclusiveMinimum")):
        yield f"is {value}, less than it may be ({least})"
    if value > most or (value == most and schema.get("exclusiveMaximum")):
        yield f"is {value}, more than it may be ({most})"
    if "multipleOf" in schema and value % schema["multipleOf"]:
        yield f"is {value}, which is no multiple of {schema['multipleOf']}"
    bits = _BITS.get(schema.get("format", "int64"), 64)
    if isinstance(value, int) and not -(1 << bits - 1) <= value < 1 << bits - 1:
        yield f"is {_shown(value)}, which needs more than {bits} bits"


def _repeated(schema: Schema, items: list[Any]) -> Iterator[str]:
    kind = schema.get("x-kubernetes-list-type")
    told: list[Any] = []
    if kind == "set" or schema.get("uniqueItems"):
        told = items
    elif kind == "map":
        keys = schema.get("x-kubernetes-list-map-keys", ())
        told = [{key: item.get(key) for key in keys} for item in items if isinstance(item, dict)]
    seen = set()
    for each in told:
        text = json.dumps(each, sort_keys=True)
        if text in seen:
            yield f"has {_shown(each)} twice"
            return
        seen.add(text)


def _wrong_fields(schema: Schema, value: dict[str, Any], path: Path) -> Iterator[Violation]:
    fields: Schema = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield Violation(path, SCHEMA, f'lacks "{name}"', "add it")
    if schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("additionalProperties"):
        return
    for name in value:
        if name not in fields:
            hint = did_you_mean(name, fields)
            remedy = "" if meant(name, fields) else "take it out: the API server would drop it"
            yield Violation((*path, name), SCHEMA, f"is a field that Karpenter does not know{hint}", remedy)


def _of_combinations(schema: Schema, value: Any) -> Iterator[str]:
    for name in ("allOf", "anyOf", "oneOf"):
        parts = schema.get(name, ())
        kept = sum(_allows(part, value) for part in parts)
        if parts and not {"allOf": kept == len(parts), "anyOf": kept > 0, "oneOf": kept == 1}[name]:
            yield f"is {_shown(value)}, which the schema's {name} does not allow"
    if "not" in schema and _allows(schema["not"], value):
        yield f"is {_shown(value)}, which the schema excludes"


def _allows(part: Schema, value: Any) -> bool:
    """Whether a value keeps within a part of a combination, which says nothing about other fields."""
    bounds = {**part, "x-kubernetes-preserve-unknown-fields": True}
    if any(True for _ in _of_itself(bounds, value, ())):
        return False
    return all(_allows(inner, each) for _, inner, each in _inside(part, value))


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
