"""What holds where a field is left out, as people would write it."""

from typing import Any

from reconciler.policy.shape import Field, ListOf, MapOf, Measured, Object, Shape


def default_of(field: Field) -> Any | None:
    """Plain data; None where nothing holds instead. Of an object, only what its own defaults don't say already."""
    return None if field.default is None else plainly(field.shape, field.default)


def plainly(shape: Shape, value: Any) -> Any:
    """A value of the structs as plain data."""
    match shape:
        case Object(fields=fields):
            held = [(field, getattr(value, field.attribute)) for field in fields]
            return {field.name: plainly(field.shape, own) for field, own in held if _says_more(field, own)}
        case ListOf(item=item):
            return [plainly(item, each) for each in value]
        case MapOf(value=inner):
            return {key: plainly(inner, each) for key, each in value.items()}
        case Measured():
            return str(value)
        case _:
            return value


def _says_more(field: Field, value: Any) -> bool:
    return value is not None and (field.required or value != field.default)
