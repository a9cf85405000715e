"""The validator of `jsonschema`, extended with Kubernetes keywords, for schemas of custom resources.

A structural schema of Kubernetes is close to JSON Schema draft 4 (`exclusiveMinimum` is true or false, 1.0 is not an
integer). `as_json_schema` makes implicit Kubernetes rules explicit: null is refused unless `nullable` is set, and
unlisted fields are refused, because the API server would prune them silently. The keywords below replace or extend
those of `jsonschema`: matching patterns and comparing items takes linear time on any document.
"""

import copy
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from reconciler.policy.manifests.cel_rules import CelRule, broken, compiled, matches
from reconciler.policy.tree import Path
from reconciler.policy.words import did_you_mean, meant

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

Schema = Mapping[str, Any]

BITS = {"int32": 32, "int64": 64}
ANY_BUT_NULL = ["array", "boolean", "number", "object", "string"]
INT_OR_STRING = ["integer", "string"]

# `$ref` is not supported: nothing is fetched.
_KEPT = frozenset({
    "allOf", "anyOf", "enum", "exclusiveMaximum", "exclusiveMinimum", "format", "items", "maxItems", "maxLength",
    "maxProperties", "maximum", "minItems", "minLength", "minProperties", "minimum", "multipleOf", "not", "oneOf",
    "pattern", "properties", "required", "type", "uniqueItems", "x-kubernetes-list-map-keys", "x-kubernetes-list-type",
})  # fmt: skip


def validator_of(schema: Schema) -> "Validator":
    """A validator of values against a structural schema."""
    # Imported here: the import takes a tenth of a second, which commands without validation need not spend.
    from jsonschema import Draft4Validator, validators  # noqa: PLC0415

    extend: Any = validators.extend
    added = {name: _keyword(check) for name, check in _KEYWORDS.items()}
    checks: Validator = extend(Draft4Validator, added)(as_json_schema(schema))
    return checks


def as_json_schema(schema: Schema, inside: bool = False) -> dict[str, Any]:
    """The schema with implicit Kubernetes rules made explicit.

    `inside` a combination (allOf, anyOf, oneOf, not), a schema only narrows the schema around the combination.
    """
    written = {name: value for name, value in schema.items() if name in _KEPT}
    for name in ("allOf", "anyOf", "oneOf"):
        if name in schema:
            written[name] = [as_json_schema(part, inside=True) for part in schema[name]]
    if "not" in schema:
        written["not"] = as_json_schema(schema["not"], inside=True)
    if "properties" in schema:
        written["properties"] = {name: as_json_schema(part, inside) for name, part in schema["properties"].items()}
    if "items" in schema:
        written["items"] = as_json_schema(schema["items"], inside)
    others = schema.get("additionalProperties")
    if isinstance(others, Mapping):
        written["additionalProperties"] = as_json_schema(others, inside)
    if inside:
        return written
    if schema.get("type") == "object" and not others and not schema.get("x-kubernetes-preserve-unknown-fields"):
        written["additionalProperties"] = False
    if not BITS.keys() & {schema.get("format")} and schema.get("type") in {None, "integer", "number"}:
        written["format"] = "int64"
    types = [schema["type"]] if "type" in schema else ANY_BUT_NULL
    types = INT_OR_STRING if schema.get("x-kubernetes-int-or-string") else types
    written.pop("type", None)
    # The type is checked first: a value of the wrong type gets no other error.
    return {"type": [*types, "null"] if schema.get("nullable") else types, **written}


Check = Callable[[Any, Any, Schema], bool]


def _keyword(is_kept: Check) -> Callable[..., Iterable["ValidationError"]]:
    """Wraps a predicate on values as a keyword function of `jsonschema`, which completes the error with the value, the
    keyword and the path."""

    def check(_validator: "Validator", wanted: Any, value: Any, schema: Schema) -> Iterable["ValidationError"]:
        from jsonschema.exceptions import ValidationError  # noqa: PLC0415

        return () if is_kept(wanted, value, schema) else (ValidationError(""),)

    return check


def _fits(format_name: str, value: Any, _schema: Schema) -> bool:
    """Whether an integer fits into the format's bits. The API server stores integers of at most 64 bits."""
    if not isinstance(value, int):
        return True
    bits = BITS.get(format_name, 64)
    return -(1 << bits - 1) <= value < 1 << bits - 1


def _is_list_of_its_type(kind: str, value: Any, schema: Schema) -> bool:
    if not isinstance(value, list) or kind not in {"map", "set"}:
        return True
    return first_repeated(compared(kind, value, schema)) is None


_KEYWORDS: dict[str, Check] = {
    "format": _fits,
    "multipleOf": lambda of, value, _: not isinstance(value, int | float) or isinstance(value, bool) or not value % of,
    "pattern": lambda pattern, value, _: not isinstance(value, str) or matches(pattern, value),
    "uniqueItems": lambda wanted, value, _: not wanted or not isinstance(value, list) or not first_repeated(value),
    "x-kubernetes-list-type": _is_list_of_its_type,
}


def compared(kind: str, items: list[Any], schema: Schema) -> list[Any]:
    """The parts of items that must be unique: the keys of a map list, else the whole items."""
    if kind != "map":
        return items
    keys = schema.get("x-kubernetes-list-map-keys", ())
    return [{key: item.get(key) for key in keys} for item in items if isinstance(item, dict)]


def first_repeated(items: Iterable[Any]) -> tuple[Any] | None:
    """The first item that occurs twice."""
    seen = set()
    for item in items:
        text = json.dumps(item, sort_keys=True)
        if text in seen:
            return (item,)
        seen.add(text)
    return None


# --- Checks plain data against a structural schema, as the API server does for custom resources.
#
# Theory of operation. First, defaults are filled in. Then `jsonschema` checks the value with the keywords of Kubernetes
# (`kubernetes_schema`), and each error becomes a sentence with a remedy. Last, CEL rules are evaluated on values
# without errors, innermost values first.

SCHEMA, RULE = "RC412", "RC413"
_CHANGE = "change the value in the policy, or in the template that renders it"

_LONGEST = 40  # maximum length of a value shown in a message
MOST_VIOLATIONS = 50


class Violation(msgspec.Struct, frozen=True):
    path: Path
    code: str
    sentence: str
    remedy: str = ""


class _Each(msgspec.Struct, frozen=True):
    """A step to every item of a list, or to every entry of a map except the listed ones."""

    but: frozenset[str] = frozenset()


class _Ruled(msgspec.Struct, frozen=True):
    """The rules of one part of the schema, and the steps from the root to the values that the rules apply to."""

    steps: tuple[str | _Each, ...]
    rules: tuple[CelRule, ...]


class Structural:
    """A schema and its rules, compiled once."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._validator: Validator | None = None
        self._ruled: list[_Ruled] = []
        self.unjudged: tuple[str, ...] = ()  # messages of rules that only the API server can evaluate
        self._compile(schema, ())
        self._ruled.sort(key=lambda ruled: -len(ruled.steps))

    def violations(self, value: Any) -> list[Violation]:
        """Violations that the API server would refuse, and fields that it would prune; at most a fixed number."""
        value = filled(self._schema, value)
        self._validator = self._validator or validator_of(self._schema)
        violations = list(islice(_violations(self._validator.iter_errors(value)), MOST_VIOLATIONS))
        return [*violations, *self._breaches(value, violations)][:MOST_VIOLATIONS]

    def _compile(self, part: Schema, steps: tuple[str | _Each, ...]) -> None:
        if validations := part.get("x-kubernetes-validations"):
            rules, unjudged = compiled(validations)
            self.unjudged += unjudged
            self._ruled += [_Ruled(steps, rules)] if rules else []
        fields: Schema = part.get("properties", {})
        for name, inner in fields.items():
            self._compile(inner, (*steps, name))
        for inner, step in (
            (part.get("items"), _Each()),
            (part.get("additionalProperties"), _Each(frozenset(fields))),
        ):
            if isinstance(inner, Mapping):
                self._compile(inner, (*steps, step))

    def _breaches(self, value: Any, violations: Iterable[Violation]) -> Iterator[Violation]:
        """Violated rules, for values without other violations."""
        error = {each.path[:length] for each in violations for length in range(len(each.path) + 1)}
        for ruled in self._ruled:
            for path, inner in _reached(value, ruled.steps, ()):
                if path in error:
                    continue
                for breach in broken(ruled.rules, inner):
                    text = f"violates a rule of Karpenter: {breach.message}"
                    text = f"is {_shown(inner)}, which {text}" if isinstance(inner, str | int | float) else text
                    yield Violation(path + breach.item, RULE, text, _CHANGE)
                    error.update(path[:length] for length in range(len(path) + 1))


def _reached(value: Any, steps: tuple[str | _Each, ...], path: Path) -> Iterator[tuple[Path, Any]]:
    """The values at the end of the steps, except null."""
    if not steps:
        yield from () if value is None else [(path, value)]
        return
    step, *rest = steps
    names: Iterable[str | int] = ()
    if isinstance(step, str):
        names = (step,) if isinstance(value, dict) and step in value else ()
    elif isinstance(value, list):
        names = range(len(value))
    elif isinstance(value, dict):
        names = [name for name in value if name not in step.but]
    for name in names:
        yield from _reached(value[name], tuple(rest), (*path, name))


def filled(schema: Schema, value: Any) -> Any:
    """A copy of the value with the schema's defaults in place of absent fields."""
    if isinstance(value, list) and "items" in schema:
        return [filled(schema["items"], each) for each in value]
    if not isinstance(value, dict):
        return value
    fields: Schema = schema.get("properties", {})
    absent = sorted(name for name, part in fields.items() if "default" in part and value.get(name) is None)
    whole = value | {name: copy.deepcopy(fields[name]["default"]) for name in absent}
    others = schema.get("additionalProperties")
    for name, each in whole.items():
        if isinstance(each, dict | list):
            part = fields.get(name, others)
            whole[name] = filled(part, each) if isinstance(part, Mapping) else each
    return whole


def _violations(errors: Iterable["ValidationError"]) -> Iterator[Violation]:
    """The validator's errors as violations, without duplicates."""
    violations = set[Violation]()
    mistyped = set[Path]()
    for error in errors:
        path = tuple(error.absolute_path)
        if error.validator == "type":
            mistyped.add(path)
        elif error.instance is None or path in mistyped:
            continue  # the type error hides all others, and an allowed null is no error
        for violation in _words_of(error, path):
            if violation not in violations:
                violations.add(violation)
                yield violation


def _words_of(error: "ValidationError", path: Path) -> Iterator[Violation]:
    given: Any = (error.instance, error.validator_value, error.schema)
    value, wanted, schema = given
    match error.validator:
        case "type":
            yield _type_violation(path, value, wanted)
        case "enum":
            known = [str(each) for each in wanted]
            hint = did_you_mean(value, known) if isinstance(value, str) else ""
            yield Violation(path, SCHEMA, f"is {_shown(value)}{hint}", f"write one of {', '.join(known)}")
        case "required":
            for name in wanted:
                if name not in value:
                    yield Violation(path, SCHEMA, f'has no "{name}"', "add it")
        case "additionalProperties":
            fields: Schema = schema.get("properties", {})
            for name in value:
                if name not in fields:
                    yield _unknown(path, name, fields)
        case keyword:
            yield Violation(path, SCHEMA, _SENTENCES[str(keyword)](value, wanted, schema))


def _type_violation(path: Path, value: Any, types: list[str]) -> Violation:
    if value is None:
        return Violation(path, SCHEMA, "is null", "remove the field, or set a value")
    wanted = " or ".join(_TYPES[each] for each in types if each != "null")
    is_number = isinstance(value, int | float)
    remedy = f'write "{_shown(value)}", with quotes' if wanted == _TYPES["string"] and is_number else ""
    return Violation(path, SCHEMA, f"must be {wanted}, got {_shown(value)}", remedy)


_TYPES = {
    "object": "a map",
    "array": "a list",
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
}


def _unknown(path: Path, name: str, fields: Schema) -> Violation:
    hint = did_you_mean(name, fields)
    remedy = "" if meant(name, fields) else "remove it; the API server would drop it"
    return Violation((*path, name), SCHEMA, f"is an unknown field{hint}", remedy)


Sentence = Callable[[Any, Any, Schema], str]


def _counted(unit: str, relation: str) -> Sentence:
    return lambda value, limit, _: f"has {len(value)} {unit}, {relation} than {limit}"


def _combined(name: str) -> Sentence:
    return lambda value, *_: f"is {_shown(value)}, which the schema's {name} does not allow"


def _twice(kind: str, value: list[Any], schema: Schema) -> str:
    repeated = first_repeated(compared(kind, value, schema))
    return f"has {_shown(repeated[0] if repeated else value)} twice"


_SENTENCES: dict[str, Sentence] = {
    "anyOf": _combined("anyOf"),
    "oneOf": _combined("oneOf"),
    "not": lambda value, *_: f"is {_shown(value)}, which the schema does not allow",
    "format": lambda value, name, _: f"is {_shown(value)}, which needs more than {BITS.get(name, 64)} bits",
    "pattern": lambda value, pattern, _: f"is {_shown(value)}, which does not match {pattern}",
    "multipleOf": lambda value, of, _: f"is {value}, which is not a multiple of {of}",
    "minimum": lambda value, least, _: f"is {value}, less than the minimum {least}",
    "maximum": lambda value, most, _: f"is {value}, more than the maximum {most}",
    "minLength": _counted("characters", "fewer"),
    "maxLength": _counted("characters", "more"),
    "minItems": _counted("items", "fewer"),
    "maxItems": _counted("items", "more"),
    "minProperties": _counted("entries", "fewer"),
    "maxProperties": _counted("entries", "more"),
    "uniqueItems": lambda value, _, schema: _twice("set", value, schema),
    "x-kubernetes-list-type": lambda value, kind, schema: _twice(kind, value, schema),
}


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
