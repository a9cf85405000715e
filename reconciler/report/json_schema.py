"""The JSON Schema of a report's JSON, from the structs it is made of; draft-07, and strict."""

from typing import Annotated, Any

import msgspec

DRAFT = "http://json-schema.org/draft-07/schema#"

Keywords = dict[str, Any]


def shape_schema(shape: type[msgspec.Struct], title: str, origin: str) -> Keywords:
    """Nothing may be missing, and nothing more may be there. `origin` is where a reader would edit it."""
    (top,), definitions = msgspec.json.schema_components([shape], ref_template="#/definitions/{name}")
    strict = {name: _strict(definition) for name, definition in sorted(definitions.items())}
    comment = f"Written by `make generate` from {origin}; edit there."
    return {"$schema": DRAFT, "$comment": comment, "title": title, "allOf": [top], "definitions": strict}


def _strict(schema: Any) -> Any:
    """In the words of draft-07, and with every field in its place: defaults are written out."""
    if isinstance(schema, list):
        return [_strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    entries = {
        name: _strict(each) for name, each in schema.items() if name not in {"title", "default", "discriminator"}
    }
    if "prefixItems" in entries:
        entries |= {"items": entries.pop("prefixItems"), "additionalItems": False}
    if "properties" in schema:
        # Names of fields are no keywords: a field may be called title.
        entries["properties"] = {name: _strict(each) for name, each in schema["properties"].items()}
        entries |= {"required": sorted(entries["properties"]), "additionalProperties": False}
    return entries


# --- What JSON reports have in common: how a moment is written, and what made them.

TIME_PATTERN = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{3})?Z$"
Time = Annotated[str, msgspec.Meta(description="2026-11-18T14:52:00Z", pattern=TIME_PATTERN)]


class Tool(msgspec.Struct, frozen=True):
    """What made it."""

    name: str
    version: str
