"""Checks plain data against a structural schema, the way the API server does with custom resources.

Theory of operation. First defaults are filled in, as there. Then `jsonschema` checks the value with the keywords of
Kubernetes (`kubernetes_schema`), and each of the validator's errors becomes a sentence with a remedy. Last, the rules
in CEL are asked of those values in which nothing is wrong, the innermost first.
"""

import copy
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from reconciler.policy.manifests.cel_rules import CelRule, broken, compiled
from reconciler.policy.manifests.kubernetes_schema import BITS, Schema, compared, first_repeated, validator_of
from reconciler.policy.tree import Path
from reconciler.policy.words import did_you_mean, meant

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

SCHEMA, RULE = "RC412", "RC413"

_LONGEST = 40  # characters of a value in a sentence
MOST_VIOLATIONS = 50


class Violation(msgspec.Struct, frozen=True):
    """One value that is refused."""

    path: Path
    code: str
    sentence: str
    remedy: str = ""


class _Each(msgspec.Struct, frozen=True):
    """A step to every item of a list, or to every entry of a map but some."""

    but: frozenset[str] = frozenset()


class _Ruled(msgspec.Struct, frozen=True):
    """The rules of one part of the schema, and the steps from the outermost value to the values they are about."""

    steps: tuple[str | _Each, ...]
    rules: tuple[CelRule, ...]


class Structural:
    """A schema with its rules, compiled once."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._validator: Validator | None = None
        self._ruled: list[_Ruled] = []
        self.unjudged: tuple[str, ...] = ()  # messages of rules that only the API server can judge
        self._compile(schema, ())
        self._ruled.sort(key=lambda ruled: -len(ruled.steps))

    def violations(self, value: Any) -> list[Violation]:
        """What the API server would refuse, and what it would drop; the first of them, if there are very many."""
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
        """The rules that are broken by values in which nothing else is wrong."""
        error = {each.path[:length] for each in violations for length in range(len(each.path) + 1)}
        for ruled in self._ruled:
            for path, inner in _reached(value, ruled.steps, ()):
                if path in error:
                    continue
                for breach in broken(ruled.rules, inner):
                    text = f"breaks a rule of Karpenter's: {breach.message}"
                    text = f"is {_shown(inner)}, which {text}" if isinstance(inner, str | int | float) else text
                    yield Violation(path + breach.item, RULE, text)
                    error.update(path[:length] for length in range(len(path) + 1))


def _reached(value: Any, steps: tuple[str | _Each, ...], path: Path) -> Iterator[tuple[Path, Any]]:
    """The values at the end of the steps, null not among them."""
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
    """A copy with the schema's defaults where a field is absent."""
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
    """The errors of the validator in our words, each once."""
    violations = set[Violation]()
    mistyped = set[Path]()
    for error in errors:
        path = tuple(error.absolute_path)
        if error.validator == "type":
            mistyped.add(path)
        elif error.instance is None or path in mistyped:
            continue  # the type comes first: nothing else is worth saying, and a null that is allowed is allowed
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
                    yield Violation(path, SCHEMA, f'lacks "{name}"', "add it")
        case "additionalProperties":
            fields: Schema = schema.get("properties", {})
            for name in value:
                if name not in fields:
                    yield _unknown(path, name, fields)
        case keyword:
            yield Violation(path, SCHEMA, _SENTENCES[str(keyword)](value, wanted, schema))


def _type_violation(path: Path, value: Any, types: list[str]) -> Violation:
    if value is None:
        return Violation(path, SCHEMA, "is null", "leave the field out, or give it a value")
    wanted = " or ".join(_TYPES[each] for each in types if each != "null")
    is_number = isinstance(value, int | float)
    remedy = f'write "{_shown(value)}", with quotes' if wanted == _TYPES["string"] and is_number else ""
    return Violation(path, SCHEMA, f"must be {wanted}, and is {_shown(value)}", remedy)


_TYPES = {
    "object": "a map",
    "array": "a list",
    "string": "a text",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
}


def _unknown(path: Path, name: str, fields: Schema) -> Violation:
    hint = did_you_mean(name, fields)
    remedy = "" if meant(name, fields) else "take it out: the API server would drop it"
    return Violation((*path, name), SCHEMA, f"is a field that Karpenter does not know{hint}", remedy)


Sentence = Callable[[Any, Any, Schema], str]


def _fewer(unit: str) -> Sentence:
    return lambda value, least, _: f"has {len(value)} {unit}, fewer than {least}"


def _more(unit: str) -> Sentence:
    return lambda value, most, _: f"has {len(value)} {unit}, more than {most}"


def _combined(name: str) -> Sentence:
    return lambda value, *_: f"is {_shown(value)}, which the schema's {name} does not allow"


def _twice(kind: str, value: list[Any], schema: Schema) -> str:
    repeated = first_repeated(compared(kind, value, schema))
    return f"has {_shown(repeated[0] if repeated else value)} twice"


_SENTENCES: dict[str, Sentence] = {
    "anyOf": _combined("anyOf"),
    "oneOf": _combined("oneOf"),
    "not": lambda value, *_: f"is {_shown(value)}, which the schema excludes",
    "format": lambda value, name, _: f"is {_shown(value)}, which needs more than {BITS.get(name, 64)} bits",
    "pattern": lambda value, pattern, _: f"is {_shown(value)}, which does not match {pattern}",
    "multipleOf": lambda value, of, _: f"is {value}, which is no multiple of {of}",
    "minimum": lambda value, least, _: f"is {value}, less than it may be ({least})",
    "maximum": lambda value, most, _: f"is {value}, more than it may be ({most})",
    "minLength": _fewer("characters"),
    "maxLength": _more("characters"),
    "minItems": _fewer("items"),
    "maxItems": _more("items"),
    "minProperties": _fewer("entries"),
    "maxProperties": _more("entries"),
    "uniqueItems": lambda value, _, schema: _twice("set", value, schema),
    "x-kubernetes-list-type": lambda value, kind, schema: _twice(kind, value, schema),
}


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
