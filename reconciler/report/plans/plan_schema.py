"""The JSON Schema of a plan's JSON, from the structs it is made of."""

from reconciler.report.plans.plan_shape import PlanTold
from reconciler.report.schema.json_parts import TIME_PATTERN
from reconciler.report.schema.shape_schema import Keywords, shape_schema

_FACT = {"$ref": "#/definitions/Fact"}
_FACTS = {"type": "object", "additionalProperties": _FACT}
FORMS: tuple[Keywords, ...] = (
    {"description": "A time.", "type": "string", "pattern": TIME_PATTERN},
    {"description": "Text.", "type": "string"},
    {"description": "A number.", "type": "integer"},
    {"type": "boolean"},
    {"description": "An object of the cluster.", "$ref": "#/definitions/Ref"},
    {
        "description": "A cause, or the reason of what is held.",
        "type": "object",
        "properties": {"reason": {"type": "string"}, "facts": _FACTS, "sentence": {"type": "string"}},
        "required": ["facts", "reason", "sentence"],
        "additionalProperties": False,
    },
    {"description": "Several.", "type": "array", "items": _FACT},
    {"description": "Fields by name, as docs/reference/reasons.md says of the code.", **_FACTS},
)


def plan_schema() -> Keywords:
    """As it is published."""
    schema = shape_schema(PlanTold, "Plan", "reconciler/report/plans/plan_shape.py")
    fact = {"description": "One fact of a reason, in one of these forms.", "anyOf": list(FORMS)}
    return schema | {"definitions": dict(sorted({**schema["definitions"], "Fact": fact}.items()))}
