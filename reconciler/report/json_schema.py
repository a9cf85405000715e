"""JSON Schema of a report's JSON, from its structs; draft-07, strict."""

from typing import Annotated, Any, TypeVar

import msgspec

DRAFT = "http://json-schema.org/draft-07/schema#"

Keywords = dict[str, Any]
S = TypeVar("S", bound=msgspec.Struct)


def says(description: str) -> msgspec.Meta:
    return msgspec.Meta(description=description)


def told(kind: type[S], source: object, **others: Any) -> S:
    """The struct `kind`: the fields in `others`, and the attributes of `source` with the names of the other fields."""
    attributes = {name: getattr(source, name) for name in kind.__struct_fields__ if name not in others}
    lists = {name: list(each) if isinstance(each, tuple) else each for name, each in attributes.items()}
    return kind(**lists, **others)


def shape_schema(shape: type[msgspec.Struct], title: str, origin: str) -> Keywords:
    """The schema: all fields are required, no others are allowed. `origin` is the source file to edit."""
    (top,), definitions = msgspec.json.schema_components([shape], ref_template="#/definitions/{name}")
    strict = {name: _strict(definition) for name, definition in sorted(definitions.items())}
    comment = f"Written by `make generate` from {origin}; edit there."
    return {"$schema": DRAFT, "$comment": comment, "title": title, "allOf": [top], "definitions": strict}


def _strict(schema: Any) -> Any:
    """The schema in draft-07, with defaults as required fields."""
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
        # Field names are not keywords: a field may be called title.
        entries["properties"] = {name: _strict(each) for name, each in schema["properties"].items()}
        entries |= {"required": sorted(entries["properties"]), "additionalProperties": False}
    return entries


# --- Types shared by JSON reports: times, and the tool.

TIME_PATTERN = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{3})?Z$"
Time = Annotated[str, msgspec.Meta(description="2026-11-18T14:52:00Z", pattern=TIME_PATTERN)]


class Tool(msgspec.Struct, frozen=True):
    """The program that wrote the report."""

    name: str
    version: str
