"""CustomResourceDefinitions of the kinds, so that an API server refuses the same objects as the reader.

Differences: the API server accepts no float for a quantity (such as 0.5 without quotes), because its type for a
number or a text is int-or-string; it drops unknown fields unless validation is strict; and only the reader can check
references. An object that passes in spite of an error gets the error in its status.
"""

from typing import Any

from reconciler.model.fields import LONGEST_NAME, ObjectStatus, PolicyStatus
from reconciler.model.quantity import Duration, Quantity
from reconciler.policy.json_schema import LEAST_QUANTITY, QUANTITIES_BELOW, Keywords, description, leaf, limits
from reconciler.policy.shape import (
    GROUP,
    VERSION,
    Choice,
    Field,
    Kind,
    ListOf,
    MapOf,
    Measured,
    Object,
    Shape,
    ValidationRule,
    bounded,
    default_of,
    describe,
)
from reconciler.schema.reference import quoted, refusal, refusal_with_figures

CATEGORY = "gpu-scheduling"
BUNDLE = "Digest of the bundle that the object was rendered with; each bundle is a new generation of its objects."

_LONGEST_HOURS = 10 * 366 * 24  # as in Duration


def crd_of(kind: Kind) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": crd_name(kind)},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": kind.name.lower(),
                "shortNames": [kind.short],
                "categories": [CATEGORY],
            },
            "versions": [_version(kind)],
        },
    }


def crd_name(kind: Kind) -> str:
    """Name of the definition, as Kubernetes requires it."""
    return f"{kind.plural}.{GROUP}"


def _version(kind: Kind) -> Keywords:
    columns = [{"name": column.title, "type": column.type, "jsonPath": column.path} for column in kind.columns]
    return {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": columns,
        "schema": {"openAPIV3Schema": _document(kind)},
    }


def _document(kind: Kind) -> Keywords:
    spec = {"description": kind.shape.sentence, **_object(kind.shape)}
    if kind.rules:
        spec["x-kubernetes-validations"] = [_rule(rule, kind.shape) for rule in kind.rules]
    if "required" not in spec:
        spec["default"] = {}
    return {
        "description": kind.shape.sentence,
        "type": "object",
        **({"required": ["spec"]} if "required" in spec else {}),
        **({"x-kubernetes-validations": [_short_name(kind)]} if kind.longest_name < LONGEST_NAME else {}),
        "properties": {
            "apiVersion": {"description": "API version of the object.", "type": "string"},
            "kind": {"description": "Kind of the object.", "type": "string"},
            # Kubernetes describes metadata, and allows nothing else here.
            "metadata": {"type": "object"},
            **({"bundle": {"description": BUNDLE, "type": "string", "maxLength": 128}} if kind.is_policy else {}),
            "spec": spec,
            "status": _status(kind),
        },
    }


def _short_name(kind: Kind) -> Keywords:
    """A limit on the name that the schema of metadata must not contain, as Kubernetes owns it."""
    return {
        "rule": f"size(self.metadata.name) <= {kind.longest_name}",
        "message": f"a {kind.name} has a name of at most {kind.longest_name} characters (RC109): shorten it",
        "reason": "FieldValueInvalid",
    }


def _rule(rule: ValidationRule, spec: Object) -> Keywords:
    figures = refusal_with_figures(rule, spec)
    return {
        "rule": rule.cel,
        "message": refusal(rule),
        **({"messageExpression": figures} if figures else {}),
        "fieldPath": f".{rule.at}",
        "reason": "FieldValueInvalid",
    }


def _status(kind: Kind) -> Keywords:
    """Default status of a policy that no controller has seen: without a status, kstatus (used by Flux and others)
    treats an object as current. The other kinds must not delay a sync."""
    every = describe(PolicyStatus if kind.is_policy else ObjectStatus)
    report = describe(kind.report).fields if kind.report else ()
    default = {"default": {"observedGeneration": -1}} if kind.is_policy else {}
    fields = Object(every.type, every.sentence, (*every.fields, *report))
    return {"description": every.sentence, **default, **_object(fields)}


def _node(shape: Shape) -> Keywords:
    match shape:
        case Object():
            return _object(shape)
        case ListOf(item=item):
            sizes = limits(bounded(shape), "minItems", "maxItems")
            return {"type": "array", **sizes, **_merging(shape), "items": _node(item)}
        case MapOf(value=value):
            sizes = limits(bounded(shape), "minProperties", "maxProperties")
            values = {"additionalProperties": _node(value)}
            return {"type": "object", **sizes, **values, "x-kubernetes-validations": [_keys(shape)]}
        case Measured(measure=measure) if measure is Quantity:
            return _quantity(shape)
        case Measured(measure=measure) if measure is Duration:
            return {**leaf(shape), "x-kubernetes-validations": [_duration(shape)]}
        case _:
            return leaf(shape)


def _object(shape: Object) -> Keywords:
    return {
        "type": "object",
        **({"required": shape.required} if shape.required else {}),
        "properties": {field.name: _property(field) for field in shape.fields},
    }


def _property(field: Field) -> Keywords:
    default = default_of(field)
    return {
        "description": description(field),
        **_node(field.shape),
        # An omitted object gets {}, so that defaults of its fields apply.
        **({} if default is None else {"default": default}),
    }


def _merging(shape: ListOf) -> Keywords:
    """How writers share a list: keys of its items; a list without keys is one value."""
    if not shape.merge_key:
        return {"x-kubernetes-list-type": "atomic"}
    if shape.ordered:
        same = " && ".join(f"one.{name} == other.{name}" for name in shape.merge_key)
        text = f"two items have the same {', '.join(shape.merge_key)}"
        unique = {"rule": f"self.all(one, self.exists_one(other, {same}))", "message": text}
        return {"x-kubernetes-list-type": "atomic", "x-kubernetes-validations": [unique]}
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(shape.merge_key)}


def _keys(shape: MapOf) -> Keywords:
    """Schemas of the API server cannot restrict map keys, except by a rule."""
    if isinstance(shape.key, Choice):
        values = shape.key.values
        rule = f"self.all(key, key in [{', '.join(map(quoted, values))}])"
        return {"rule": rule, "message": f"keys may be {', '.join(values)}"}
    rule = f"self.all(key, key.matches({quoted(shape.key.pattern)}))"
    return {"rule": rule, "message": f"each key must be {shape.key.words}"}


def _quantity(shape: Measured) -> Keywords:
    text = {name: value for name, value in leaf(shape).items() if name != "type"}
    return {
        "x-kubernetes-int-or-string": True,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        # Limits of the integer; the others are for the text.
        "minimum": LEAST_QUANTITY,
        "maximum": QUANTITIES_BELOW,
        "exclusiveMaximum": True,
        **text,
    }


def _duration(shape: Measured) -> Keywords:
    """The upper limit, which no pattern can express."""
    longest = f"duration(self) <= duration('{_LONGEST_HOURS}h')"
    words = [f"self == {quoted(word)}" for word in shape.words]
    return {"rule": " || ".join([*words, longest]), "message": "is longer than ten years"}
