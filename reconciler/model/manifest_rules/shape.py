"""Allow lists: a shape defines the fields that an object may have, and their values.

A field that no shape names is refused. A field of a later Kubernetes version is therefore refused until it is added.
The shapes are checked here and compiled to CEL in policy/published/admission/.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

Path = tuple[str | int, ...]
Scalar = str | int | bool


class ManifestFault(msgspec.Struct, frozen=True):
    """A value that is not allowed."""

    path: Path
    sentence: str
    remedy: str


class Map(msgspec.Struct, frozen=True):
    """A map with any content."""


class AnyList(msgspec.Struct, frozen=True):
    """A list with any content."""


class RestrictedText(msgspec.Struct, frozen=True):
    """A string without any of the forbidden prefixes."""

    refused: tuple[str, ...] = ()


class Number(msgspec.Struct, frozen=True):
    least: int | None = None
    most: int | None = None


class Flag(msgspec.Struct, frozen=True):
    """true or false."""


class OneOf(msgspec.Struct, frozen=True):
    values: tuple[Scalar, ...]


class TextMap(msgspec.Struct, frozen=True):
    """A map of strings; keys must not have the forbidden prefixes."""

    refused: tuple[str, ...] = ()


class ListOf(msgspec.Struct, frozen=True):
    """A list of at least one item, each of this shape."""

    item: "Shape"


class Including(msgspec.Struct, frozen=True):
    """A list that contains this string."""

    value: str


class ManifestField(msgspec.Struct, frozen=True):
    name: str
    shape: "Shape"
    required: bool = False
    by_server: bool = False  # only the API server and its plugins write the field


class Fields(msgspec.Struct, frozen=True):
    """An object with these fields and no others."""

    entries: tuple[ManifestField, ...]


Shape = Map | AnyList | RestrictedText | Number | Flag | OneOf | TextMap | ListOf | Including | Fields

_TYPES: dict[type, tuple[type, str]] = {
    Map: (dict, "a map"),
    TextMap: (dict, "a map"),
    Fields: (dict, "a map"),
    AnyList: (list, "a list"),
    ListOf: (list, "a list"),
    Including: (list, "a list"),
    RestrictedText: (str, "a string"),
    Number: (int, "an integer"),
    Flag: (bool, "true or false"),
}


def faults(shape: Shape, value: Any, path: Path = ()) -> Iterator[ManifestFault]:
    """The violations of the shape, outermost first."""
    if not isinstance(shape, OneOf) and not _is_of_type(shape, value):
        words = _TYPES[type(shape)][1]
        yield ManifestFault(path, f"must be {words}", f"write {words}")
        return
    match shape:
        case Fields():
            yield from _of_fields(shape, value, path)
        case ListOf(item=item):
            if not value:
                yield ManifestFault(path, "is empty", "write at least one item")
            for number, each in enumerate(value):
                yield from faults(item, each, (*path, number))
        case TextMap(refused=beginnings):
            for key in value:
                if str(key).startswith(beginnings):
                    yield ManifestFault((*path, key), "may not be set", "remove it")
        case _:
            yield from _of_value(shape, value, path)


def _is_of_type(shape: Shape, value: Any) -> bool:
    wanted, _ = _TYPES[type(shape)]
    # In Python, bool is a subclass of int.
    return isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool))


def _of_value(shape: Shape, value: Any, path: Path) -> Iterator[ManifestFault]:
    match shape:
        case OneOf(values=values):
            if not any(type(value) is type(each) and value == each for each in values):
                words = " or ".join(_written(each) for each in values)
                yield ManifestFault(path, f"is {_written(value)}, must be {words}", f"write {words}")
        case RestrictedText(refused=beginnings):
            if beginnings and value.startswith(beginnings):
                yield ManifestFault(path, f"is {_written(value)}, which is not allowed", "use another one")
        case Number(least=least, most=most):
            if (least is not None and value < least) or (most is not None and value > most):
                words = f"at least {least}" if most is None else f"at most {most}"
                yield ManifestFault(path, f"is {value}, must be {words}", f"write a number that is {words}")
        case Including(value=wanted):
            if wanted not in value:
                yield ManifestFault(path, f"does not contain {wanted}", f"write [{wanted}]")


def _of_fields(shape: Fields, value: dict[str, Any], path: Path) -> Iterator[ManifestFault]:
    known = {each.name: each for each in shape.entries if not each.by_server}
    for name, inner in value.items():
        if name not in known:
            yield ManifestFault((*path, name), "is not an allowed field", "remove it")
        else:
            yield from faults(known[name].shape, inner, (*path, name))
    for name, entry in known.items():
        if entry.required and name not in value:
            yield ManifestFault((*path, name), "is missing", f"write {_example(entry)}")


def _example(entry: ManifestField) -> str:
    """The field in its required form."""
    match entry.shape:
        case OneOf(values=values):
            return f"{entry.name}: {_written(values[0])}"
        case Including(value=value):
            return f"{entry.name}: [{value}]"
        case Fields(entries=entries):
            inner = ", ".join(_example(each) for each in entries if each.required and not each.by_server)
            return f"{entry.name}: {{{inner}}}"
        case _:
            return entry.name


def _written(value: Any) -> str:
    return value if isinstance(value, str) and value else msgspec.json.encode(value).decode()
