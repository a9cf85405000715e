"""The validator of `jsonschema` with the keywords of Kubernetes added, for schemas of custom resources.

A structural schema of Kubernetes is close to JSON Schema draft 4 (`exclusiveMinimum` is true or false, 1.0 is no
integer). `as_json_schema` writes out what Kubernetes adds in silence: null is refused unless `nullable` is set, and a
field that is not listed is refused, as the API server would drop the field without a word. The keywords below replace
or extend those of `jsonschema`: patterns and comparisons of items take linear time, whatever the document is.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from reconciler.policy.manifests.cel_rules import matches

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

Schema = Mapping[str, Any]

BITS = {"int32": 32, "int64": 64}
ANY_BUT_NULL = ["array", "boolean", "number", "object", "string"]
INT_OR_STRING = ["integer", "string"]

# A reference is not among them: nothing is fetched.
_KEPT = frozenset({
    "allOf", "anyOf", "enum", "exclusiveMaximum", "exclusiveMinimum", "format", "items", "maxItems", "maxLength",
    "maxProperties", "maximum", "minItems", "minLength", "minProperties", "minimum", "multipleOf", "not", "oneOf",
    "pattern", "properties", "required", "type", "uniqueItems", "x-kubernetes-list-map-keys", "x-kubernetes-list-type",
})  # fmt: skip


def validator_of(schema: Schema) -> "Validator":
    """A validator of values against a structural schema."""
    # A tenth of a second, which commands that check nothing do not pay.
    from jsonschema import Draft4Validator, validators  # noqa: PLC0415

    extend: Any = validators.extend
    added = {name: _keyword(check) for name, check in _KEYWORDS.items()}
    checks: Validator = extend(Draft4Validator, added)(as_json_schema(schema))
    return checks


def as_json_schema(schema: Schema, inside: bool = False) -> dict[str, Any]:
    """The same schema with what Kubernetes means beyond the words; `inside` a combination (allOf, anyOf, oneOf, not)
    a schema only narrows what is around the combination."""
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
    # The type comes first: where it is wrong, nothing else is worth saying.
    return {"type": [*types, "null"] if schema.get("nullable") else types, **_without_type(written)}


def _without_type(schema: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name != "type"}


Check = Callable[[Any, Any, Schema], bool]


def _keyword(is_kept: Check) -> Callable[..., Iterable["ValidationError"]]:
    """A function as `jsonschema` calls them, of one that says whether a value keeps to a keyword."""

    def check(_validator: "Validator", wanted: Any, value: Any, schema: Schema) -> Iterable["ValidationError"]:
        return () if is_kept(wanted, value, schema) else (_error(),)

    return check


def _error() -> "ValidationError":
    """An error that `jsonschema` completes with the value, the keyword and the path."""
    from jsonschema.exceptions import ValidationError  # noqa: PLC0415

    return ValidationError("")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _fits(format_name: str, value: Any, _schema: Schema) -> bool:
    """Whether an integer fits into its bits; the API server stores none that is larger than 64."""
    if not isinstance(value, int):
        return True
    bits = BITS.get(format_name, 64)
    return -(1 << bits - 1) <= value < 1 << bits - 1


def _has_form(pattern: str, value: Any, _schema: Schema) -> bool:
    return not isinstance(value, str) or matches(pattern, value)


def _is_multiple(of: float, value: Any, _schema: Schema) -> bool:
    return not _is_number(value) or not value % of


def _is_list_of_its_type(kind: str, value: Any, schema: Schema) -> bool:
    if not isinstance(value, list) or kind not in {"map", "set"}:
        return True
    return first_repeated(compared(kind, value, schema)) is None


def _is_unique(wanted: bool, value: Any, _schema: Schema) -> bool:
    return not wanted or not isinstance(value, list) or first_repeated(value) is None


_KEYWORDS: dict[str, Check] = {
    "format": _fits,
    "multipleOf": _is_multiple,
    "pattern": _has_form,
    "uniqueItems": _is_unique,
    "x-kubernetes-list-type": _is_list_of_its_type,
}


def compared(kind: str, items: list[Any], schema: Schema) -> list[Any]:
    """What must differ from item to item: of a map, the keys; else the whole item."""
    if kind != "map":
        return items
    keys = schema.get("x-kubernetes-list-map-keys", ())
    return [{key: item.get(key) for key in keys} for item in items if isinstance(item, dict)]


def first_repeated(items: Iterable[Any]) -> tuple[Any] | None:
    """The first item that is there twice."""
    seen = set()
    for item in items:
        text = json.dumps(item, sort_keys=True)
        if text in seen:
            return (item,)
        seen.add(text)
    return None
