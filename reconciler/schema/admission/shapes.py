"""A shape as an expression in CEL, for an object that the API server has filled in.

Fields are read by index and never by selector: `namespace` is a reserved word in CEL. `dyn()` keeps the API server from
checking the expressions against the types of Kubernetes, which can't be walked as maps.
"""

import json
from typing import Any

from reconciler.model.manifest_rules.shape import (
    Fields,
    Including,
    ListOf,
    Number,
    OneOf,
    RestrictedText,
    Shape,
    TextMap,
)

TRUE = "true"


def literal(value: Any) -> str:
    """A text, number, truth value or list of them; CEL writes them as JSON does."""
    return json.dumps(value)


def every(parts: list[str]) -> str:
    """All of these hold."""
    kept = [each for each in parts if each != TRUE]
    return " && ".join(kept) or TRUE


def matches(shape: Shape, value: str, depth: int = 0) -> str:
    """Whether a value, which is there, is as the shape says; types are for the API server to check."""
    match shape:
        case RestrictedText(refused=beginnings):
            return every([f"!{value}.startsWith({literal(each)})" for each in beginnings])
        case Number(least=least, most=most):
            bounds = [f"{value} >= {least}"] if least is not None else []
            return every(bounds + ([f"{value} <= {most}"] if most is not None else []))
        case OneOf(values=(only,)):
            return f"{value} == {literal(only)}"
        case OneOf(values=values):
            return f"{value} in {literal(list(values))}"
        case Including(value=wanted):
            return f"{literal(wanted)} in {value}"
        case TextMap(refused=beginnings) if beginnings:
            key = f"k{depth}"
            return f"{value}.all({key}, {every([f'!{key}.startsWith({literal(each)})' for each in beginnings])})"
        case ListOf(item=item):
            each = f"i{depth}"
            inner = matches(item, each, depth + 1)
            return f"size({value}) > 0" if inner == TRUE else f"size({value}) > 0 && {value}.all({each}, {inner})"
        case Fields():
            return _of_fields(shape, value, depth)
        case _:
            return TRUE


def _of_fields(shape: Fields, value: str, depth: int) -> str:
    key = f"k{depth}"
    names = [each.name for each in shape.entries]
    parts = [f"dyn({value}).all({key}, {key} in {literal(names)})"]
    for entry in shape.entries:
        there = f"{literal(entry.name)} in dyn({value})"
        inner = matches(entry.shape, f"dyn({value})[{literal(entry.name)}]", depth + 1)
        if entry.required:
            parts.append(there if inner == TRUE else f"{there} && {inner}")
        elif inner != TRUE:
            parts.append(f"(!({there}) || ({inner}))")
    return every(parts)
