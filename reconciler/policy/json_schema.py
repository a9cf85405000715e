"""JSON Schemas of the kinds, for editors and pre-commit checks; draft-07, the newest draft that YAML editors support.

The schemas cover all that a schema can express about a single document. The reader checks the rest: rules between
fields, equal items of a list, precision and range of quantities and durations, and references between objects.
"""

import re
from collections.abc import Iterable
from typing import Any, assert_never

from reconciler.model.fields import LABEL_KEY, LABEL_VALUE, NAME, NAMESPACE, Shaped, Within
from reconciler.model.quantity import Quantity
from reconciler.policy.shape import (
    API_VERSION,
    PATTERNS,
    Choice,
    Field,
    Flag,
    Kind,
    ListOf,
    MapOf,
    Measured,
    Object,
    Shape,
    WholeNumber,
    Words,
    bounded,
    default_of,
)
from reconciler.policy.words import expected

# --- JSON Schema keywords with the same meaning in draft-07 and in API servers: for leaf shapes, and for bounds.

Leaf = WholeNumber | Flag | Words | Choice | Measured
Keywords = dict[str, Any]

# A quantity may be written as a number; the digits have the bounds of the pattern.
LEAST_QUANTITY = 0
QUANTITIES_BELOW = 10**18


def leaf(shape: Leaf) -> Keywords:
    """Keywords of a leaf shape. A quantity is described as a string."""
    match shape:
        case WholeNumber(within=within):
            return {"type": "integer", **limits(within, "minimum", "maximum")}
        case Flag():
            return {"type": "boolean"}
        case Choice(values=values):
            return {"type": "string", "enum": list(values)}
        case Measured(measure=measure, words=words):
            pattern = either(words, PATTERNS[measure])
            return {"type": "string", **limits(bounded(shape), "minLength", "maxLength"), "pattern": pattern}
        case Words():
            pattern_if_any = {"pattern": shape.shaped.pattern} if shape.shaped else {}
            return {"type": "string", **limits(bounded(shape), "minLength", "maxLength"), **pattern_if_any}
    assert_never(shape)


def either(words: tuple[str, ...], pattern: str) -> str:
    """A pattern that matches the given words, or whatever the other pattern matches."""
    # Not re.escape: its escapes of characters such as hyphens are invalid in other regular expression dialects.
    literal = [re.sub(r"([.*+?^${}()|\[\]\\])", r"\\\1", word) for word in words]
    return f"^({'|'.join([*literal, pattern.removeprefix('^').removesuffix('$')])})$" if words else pattern


def limits(within: Within, least: str, most: str) -> Keywords:
    """Bounds, under the keywords for numbers, strings, lists or maps."""
    named = {least: within.least, most: within.most}
    return {name: bound for name, bound in named.items() if bound is not None}


def description(field: Field) -> str:
    """The field's description with its unit and default."""
    unit = f" Unit: {field.unit}." if field.unit else ""
    default = default_of(field)
    return f"{field.sentence}{unit}{'' if default in (None, {}, []) else f' Default: {in_words(default)}.'}"


def in_words(default: Any) -> str:
    """A default as YAML on one line."""
    match default:
        case bool():
            return str(default).lower()
        case list():
            return f"[{', '.join(map(in_words, default))}]"
        case dict():
            return f"{{{', '.join(f'{name}: {in_words(value)}' for name, value in default.items())}}}"
        case "":
            return '""'
        case _:
            return str(default)


DRAFT = "http://json-schema.org/draft-07/schema#"
ORIGIN = "Written by `make generate` from reconciler/model/kinds; edit there."


def schema_of(kind: Kind) -> Keywords:
    return _headed(kind.name, _document(kind, object_schema_of(kind.shape)))


def overlay_schema_of(kind: Kind) -> Keywords:
    """Schema of an overlay of an object of the same kind and name. Omitted fields keep their values."""
    return _headed(f"{kind.name} overlay", _document(kind, _overlay_object(kind.shape)))


def combined_schema_of(kinds: Iterable[Kind], overlay: bool = False) -> Keywords:
    spec_of = _overlay_object if overlay else object_schema_of
    definitions = {kind.name: _document(kind, spec_of(kind.shape)) for kind in kinds}
    either = [{"$ref": f"#/definitions/{name}"} for name in definitions]
    return _headed("Policy overlay" if overlay else "Policy", {"oneOf": either, "definitions": definitions})


def _headed(title: str, schema: Keywords) -> Keywords:
    return {"$schema": DRAFT, "$comment": ORIGIN, "title": title, **schema}


def _document(kind: Kind, spec: Keywords) -> Keywords:
    required = ["apiVersion", "kind", "metadata"]
    return {
        "description": kind.shape.sentence,
        "type": "object",
        "required": [*required, "spec"] if "required" in spec else required,
        "additionalProperties": False,
        "properties": {
            "apiVersion": {"description": "API version of the document.", "const": API_VERSION},
            "kind": {"description": kind.shape.sentence, "const": kind.name},
            "metadata": _metadata(kind),
            "spec": {"description": kind.shape.sentence, **spec},
        },
    }


def _metadata(kind: Kind) -> Keywords:
    name = {"type": "string", "maxLength": kind.longest_name, **_form(NAME.pattern, NAME.words)}
    namespace = {"type": "string", **_form(NAMESPACE.pattern, NAMESPACE.words)}
    noted = {"type": "object", "propertyNames": _form(LABEL_KEY.pattern, LABEL_KEY.words)}
    label = {"type": "string", **_form(LABEL_VALUE.pattern, LABEL_VALUE.words)}
    properties = {
        "name": {"description": f"Name of the {kind.name}.", **name},
        "namespace": {"description": "Namespace of the object.", **namespace},
        "labels": {"description": "Labels for selectors.", **noted, "additionalProperties": label},
        "annotations": {
            "description": "Notes for people and programs.",
            **noted,
            "additionalProperties": {"type": "string"},
        },
    }
    if not kind.namespaced:
        del properties["namespace"]
    return {
        "description": "Identity of the object.",
        "type": "object",
        "required": ["name"],
        "additionalProperties": False,
        "properties": properties,
    }


def _node(shape: Shape) -> Keywords:
    match shape:
        case Object():
            return object_schema_of(shape)
        case ListOf(item=item):
            return {"type": "array", **limits(bounded(shape), "minItems", "maxItems"), "items": _node(item)}
        case MapOf(value=value):
            return _map(shape, _node(value), limits(bounded(shape), "minProperties", "maxProperties"))
        case Measured(measure=measure) if measure is Quantity:
            numbers = {"type": ["number", "string"], "minimum": LEAST_QUANTITY, "exclusiveMaximum": QUANTITIES_BELOW}
            return {**leaf(shape), **numbers, "patternErrorMessage": f"expected {expected(shape)}"}
        case Measured():
            return {**leaf(shape), "patternErrorMessage": f"expected {expected(shape)}"}
        case Words(shaped=Shaped() as shaped):
            return {**leaf(shape), "patternErrorMessage": f"expected {shaped.words}"}
        case _:
            return leaf(shape)


def object_schema_of(shape: Object) -> Keywords:
    """Schema of an object, such as the spec of a document."""
    return {
        "type": "object",
        **({"required": shape.required} if shape.required else {}),
        "additionalProperties": False,
        "properties": {field.name: _property(field) for field in shape.fields},
    }


def _property(field: Field) -> Keywords:
    default = default_of(field)
    node = _node(field.shape)
    return {
        "description": description(field),
        # A key with null means that the field has its default.
        **(node if field.required else _nullable(node)),
        **({} if default is None else {"default": default}),
    }


def _map(shape: MapOf, value: Keywords, sizes: Keywords) -> Keywords:
    if isinstance(shape.key, Choice):
        entries: Keywords = {"additionalProperties": False, "properties": dict.fromkeys(shape.key.values, value)}
    else:
        entries = {"propertyNames": _form(shape.key.pattern, shape.key.words), "additionalProperties": value}
    return {"type": "object", **sizes, **entries}


def _overlay_node(shape: Shape) -> Keywords:
    """Maps are merged, so each value may be null or omitted; lists are replaced, so their items are complete."""
    match shape:
        case Object():
            return _overlay_object(shape)
        case MapOf(value=value):
            most = {"maxProperties": bounded(shape).most}
            return _map(shape, _nullable(_overlay_node(value)), most)
        case _:
            return _node(shape)


def _overlay_object(shape: Object) -> Keywords:
    properties = {
        # No `default`: a field that an overlay omits keeps the value of base.
        field.name: {"description": description(field), **_nullable(_overlay_node(field.shape))}
        for field in shape.fields
    }
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _nullable(schema: Keywords) -> Keywords:
    types: Any = schema["type"]
    widened: Keywords = {"type": [*([types] if isinstance(types, str) else types), "null"]}
    if "enum" in schema:
        widened["enum"] = [*schema["enum"], None]
    return {**schema, **widened}


def _form(pattern: str, words: str) -> Keywords:
    return {"pattern": pattern, "patternErrorMessage": f"expected {words}"}
