"""What holds where a field is left out, as people would write it."""

from typing import Any

from reconciler.policy.shape import Field, ListOf, MapOf, Measured, Object, Shape


def default_of(field: Field) -> Any | None:
    """Plain data; None where nothing holds instead. Of an object, only what its own defaults don't say already."""
    return None if field.default is None else plainly(field.shape, field.default)


def plainly(shape: Shape, value: Any) -> Any:
    """A value of the structs as plain data, without fields that have their default."""
    return _plain(shape, value, in_item=False, writes_item_defaults=False)


def with_item_defaults(shape: Shape, value: Any) -> Any:
    """The same, but objects inside of lists have all their fields.

    The API server fills in the defaults of list items too, but who applies a list owns all of each item, so that Argo
    CD's default diff would compare an item without its defaults to the item with them, and differ for ever. Outside of
    lists a field that nobody applies stays free for other writers, `suspend` for example.
    """
    return _plain(shape, value, in_item=False, writes_item_defaults=True)


def _plain(shape: Shape, value: Any, in_item: bool, writes_item_defaults: bool) -> Any:
    match shape:
        case Object(fields=fields):
            held = [(field, getattr(value, field.attribute)) for field in fields]
            return {
                field.name: _plain(field.shape, own, in_item, writes_item_defaults)
                for field, own in held
                if _says_more(field, own) or (in_item and own is not None)
            }
        case ListOf(item=item):
            return [_plain(item, each, writes_item_defaults, writes_item_defaults) for each in value]
        case MapOf(value=inner):
            return {key: _plain(inner, each, in_item, writes_item_defaults) for key, each in value.items()}
        case Measured():
            return str(value)
        case _:
            return value


def _says_more(field: Field, value: Any) -> bool:
    return value is not None and (field.required or value != field.default)
