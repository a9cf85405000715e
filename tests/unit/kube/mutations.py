"""What is written into a field of an object, and which fields an object of a kind may have."""

from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from random import Random
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

Json = dict[str, Any]
Path = tuple[str | int, ...]

DEEP = {
    f"@@deep{levels}@@": ("[" * levels + "]" * levels, '{"a":' * levels + "1" + "}" * levels)
    for levels in (70, 400, 3000)
}
_NUMBERS = (0, -1, 1, 2, 2**31 - 1, 2**31, -(2**31), 2**53, 2**63 - 1, 2**63, -(2**63) - 1, 10**40, 0.5, 1e300, -0.0)
_TEXTS = (
    "",
    " ",
    "x",
    "true",
    "false",
    "²",
    "٣",
    "0x10",
    "1_000",
    "+5",
    "-5",
    "--1",
    "9" * 25,
    "9" * 5000,
    "0" * 5000 + "1",
    "8e0",
    "1e3",
    "1E-3",
    "1e999999999",
    "1e-999999999",
    "1e4294967296",
    "5Ki",
    "1.5Gi",
    "9Ei",
    "9E",
    "-3Gi",
    ".",
    "m",
    "NaN",
    "Infinity",
    "0001-01-01T00:00:00Z",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59Z",
    "9999-12-31T23:59:59-14:00",
    "10000-01-01T00:00:00Z",
    "2026-02-30T00:00:00Z",
    "2026-11-02T08:00:00",
    "1969-12-31T23:59:59Z",
    "253402300799",
    "99999999999",
    "-1",
    "1000000000000000000h",
    "2562047h",
    "-1h",
    "1h",
    "Never",
    "0",
    "0s",
    "10%",
    "1000%",
    "²%",
    "-1%",
    "@hourly",
    "* * * * *",
    "0 0 31 2 *",
    "[",
    "{}",
    "[]",
    '{"key": 1}',
    "null",
    '{"pool": ' + "[" * 2000,
    "\x00",
    "\n",
    "\u202e",
    "😀" * 10,
    "a" * 70_000,
    "../../x",
    "a/b/c",
    "NoSchedule",
    "Exists",
    "In",
    "Gt",
    "Always",
    "Pending",
    "Succeeded",
    "True",
    "Drifted",
    "DaemonSet",
    "Node",
    "on-completion",
)
_WHOLE: tuple[Any, ...] = (
    None,
    True,
    False,
    [],
    {},
    [None],
    [[]],
    [{}],
    ["x"],
    [1],
    {"": ""},
    {"x": None},
    {"x": 1},
    {"x": "y"},
    {"x": {}},
    [["x"] * 3] * 3,
    {"²": "²"},
    {"cpu": "9" * 5000},
    {"nvidia.com/gpu": "8e0"},
    {"cpu": -1},
    ["x"] * 500,
    {str(n): "x" for n in range(500)},
)
GONE = object()


@cache
def paths_of(kind: Any, levels: int = 5) -> tuple[Path, ...]:
    """Of all fields of a struct, and of theirs."""
    found: list[Path] = []
    if levels == 0 or not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return ()
    hints = get_type_hints(kind)
    for field in msgspec.structs.fields(kind):
        if field.encode_name == "rest":
            continue
        found.append((field.encode_name,))
        for inner, via in _inner(hints[field.name]):
            found += [(field.encode_name, *via, *path) for path in paths_of(inner, levels - 1)]
    return tuple(found)


def _inner(kind: Any) -> Iterator[tuple[Any, Path]]:
    for each in get_args(kind) if get_origin(kind) in {Union, UnionType} else (kind,):
        if get_origin(each) is tuple:
            yield get_args(each)[0], (0,)
        else:
            yield each, ()


def own_paths(value: Any, at: Path = ()) -> Iterator[Path]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield (*at, key)
        yield from own_paths(each, (*at, key))


def drawn_value(chance: Random) -> Any:
    choices = (_NUMBERS, _TEXTS, _TEXTS, _WHOLE, (GONE,), [f"{mark}{number}" for mark in DEEP for number in (0, 1)])
    return chance.choice(chance.choice(choices))


def put(found: Json, path: Path, value: Any) -> None:
    """Makes what is missing on the way."""
    place: Any = found
    for key, following in pairwise(path):
        place = _step(place, key, [] if isinstance(following, int) else {})
    last = path[-1]
    if isinstance(place, list) and isinstance(last, int):
        place[last : last + 1] = [] if value is GONE else [value]
    elif isinstance(place, dict) and value is GONE:
        place.pop(str(last), None)
    elif isinstance(place, dict):
        place[str(last)] = value


def _step(place: Any, key: str | int, missing: Any) -> Any:
    if isinstance(place, list) and isinstance(key, int):
        if not place:
            place.append(missing)
        return place[min(key, len(place) - 1)]
    if isinstance(place, dict):
        if not isinstance(place.get(str(key)), dict | list):
            place[str(key)] = missing
        return place[str(key)]
    return None
