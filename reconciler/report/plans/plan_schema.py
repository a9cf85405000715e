"""The JSON Schema of a plan's JSON, from the structs it is made of; draft-07, and strict."""

from typing import Any

import msgspec

from reconciler.report.plans.plan_shape import PlanTold

DRAFT = "http://json-schema.org/draft-07/schema#"
ORIGIN = "Written by `make generate` from reconciler/report/plans/plan_shape.py; edit there."

Keywords = dict[str, Any]


def plan_schema() -> Keywords:
    """Nothing may be missing, and nothing more may be there."""
    (top,), definitions = msgspec.json.schema_components([PlanTold], ref_template="#/definitions/{name}")
    strict = {name: _strict(definition) for name, definition in sorted(definitions.items())}
    return {"$schema": DRAFT, "$comment": ORIGIN, "title": "Plan", "allOf": [top], "definitions": strict}


def _strict(schema: Any) -> Any:
    """In the words of draft-07, and with every field in its place: defaults are written out."""
    if isinstance(schema, list):
        return [_strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    told = {name: _strict(each) for name, each in schema.items() if name not in {"title", "default", "discriminator"}}
    if "prefixItems" in told:
        told |= {"items": told.pop("prefixItems"), "additionalItems": False}
    if "properties" in told:
        told |= {"required": sorted(told["properties"]), "additionalProperties": False}
    return told
