"""A parsed document: scalars, lists and maps, each with file, line and column."""

from collections.abc import Iterator
from typing import Any

import msgspec

from reconciler.model.problem import Problem


class Mark(msgspec.Struct, frozen=True, gc=False):
    """A position in a file; lines and columns count from 1."""

    file: str
    line: int
    column: int
    width: int = 1


class Scalar(msgspec.Struct, frozen=True, gc=False):
    """A string, number, boolean or null, and its source text."""

    value: str | int | float | bool | None
    text: str
    at: Mark
    doubtful: bool = False  # a problem of this value is already reported; report no second one


class MapEntry(msgspec.Struct, frozen=True):
    key: Scalar
    value: "Node"


class Mapping(msgspec.Struct, frozen=True):
    """Keys and values in source order."""

    entries: dict[str, MapEntry]
    at: Mark
    removed: dict[str, Mark] = {}  # keys of base that an overlay sets to null

    def get(self, key: str) -> "Node | None":
        entry = self.entries.get(key)
        return entry.value if entry else None


class Sequence(msgspec.Struct, frozen=True):
    """Items in source order."""

    items: tuple["Node", ...]
    at: Mark


Node = Scalar | Mapping | Sequence
Path = tuple[str | int, ...]


def problem(at: Mark, code: str, sentence: str, remedy: str = "", field: str = "") -> Problem:
    """A problem at a position. `field`: the field that the sentence names."""
    return Problem(at.file, at.line, at.column, code, _short(sentence), _short(remedy), at.width, field=field)


def _short(text: str) -> str:
    """Truncates a sentence: a key may be as long as a file."""
    return text if len(text) <= LONGEST_SENTENCE else f"{text[: LONGEST_SENTENCE - 1]}…"


def plain(node: Node) -> Any:
    """The values without positions."""
    match node:
        case Scalar(value=value):
            return value
        case Sequence(items=items):
            return [plain(item) for item in items]
        case Mapping(entries=entries):
            return {name: plain(entry.value) for name, entry in entries.items()}


def places(node: Node, path: Path = ()) -> Iterator[tuple[Path, Mark]]:
    """The position of each value; for a value of a map, the position of its key."""
    match node:
        case Sequence(items=items):
            for number, item in enumerate(items):
                yield (*path, number), item.at
                yield from places(item, (*path, number))
        case Mapping(entries=entries):
            for name, entry in entries.items():
                yield (*path, name), entry.key.at
                yield from places(entry.value, (*path, name))


def written(path: Path) -> str:
    """A path in its written form: spec.taints[0].key."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def describe_node(node: Node) -> str:
    """A node's value in words, for 'expected …, got …'."""
    match node:
        case Mapping():
            return "a map"
        case Sequence():
            return "a list"
        case Scalar(value=None):
            return "nothing"
        case Scalar(value=str(), text=text):
            return f'"{text if len(text) <= 40 else text[:39] + "…"}"'
        case Scalar(text=text):
            return text


# --- Limits on the checking of a bundle: a file of one megabyte can have a hundred thousand problems.

MOST_PROBLEMS = 1_000  # checking stops at this number
MOST_MERGED = 20_000  # maximum number of objects of all environments that are merged and checked
LONGEST_EXCERPT = 1_000  # maximum number of characters shown of a source line
LONGEST_SENTENCE = 500
LONGEST_WORD = 64  # maximum length of a word to which a known word is suggested
