"""A document as it was written: scalars, lists and maps, each knowing its file, line and column."""

from collections.abc import Iterator
from typing import Any

import msgspec

from reconciler.model.problem import Problem


class Mark(msgspec.Struct, frozen=True, gc=False):
    """A place in a file; lines and columns count from 1."""

    file: str
    line: int
    column: int
    width: int = 1


class Scalar(msgspec.Struct, frozen=True, gc=False):
    """A text, number, truth value or null, and the text it was written as."""

    value: str | int | float | bool | None
    text: str
    at: Mark
    doubtful: bool = False  # a problem about it has been told: no second one


class MapEntry(msgspec.Struct, frozen=True):
    """A key of a map with its value."""

    key: Scalar
    value: "Node"


class Mapping(msgspec.Struct, frozen=True):
    """Keys and values in the order they were written."""

    entries: dict[str, MapEntry]
    at: Mark

    def get(self, key: str) -> "Node | None":
        entry = self.entries.get(key)
        return entry.value if entry else None


class Sequence(msgspec.Struct, frozen=True):
    """Items in order."""

    items: tuple["Node", ...]
    at: Mark


Node = Scalar | Mapping | Sequence
Path = tuple[str | int, ...]


def problem(at: Mark, code: str, sentence: str, remedy: str = "", field: str = "") -> Problem:
    """A problem at a place; `field`: that the sentence names."""
    return Problem(at.file, at.line, at.column, code, _short(sentence), _short(remedy), at.width, field=field)


def _short(text: str) -> str:
    """A key may be as long as a file."""
    return text if len(text) <= LONGEST_SENTENCE else f"{text[: LONGEST_SENTENCE - 1]}…"


def plain(node: Node) -> Any:
    """The values alone."""
    match node:
        case Scalar(value=value):
            return value
        case Sequence(items=items):
            return [plain(item) for item in items]
        case Mapping(entries=entries):
            return {name: plain(entry.value) for name, entry in entries.items()}


def places(node: Node, path: Path = ()) -> Iterator[tuple[Path, Mark]]:
    """Where each value stands; of a map's value, where its key stands."""
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
    """A path as people write it: spec.taints[0].key."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def describe_node(node: Node) -> str:
    """A node in words, for 'expected …, got …'."""
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


# --- How much of a bundle is looked at: a file of a megabyte can have a hundred thousand problems, which nobody reads.

MOST_PROBLEMS = 1_000  # then no further one is looked for
MOST_MERGED = 20_000  # objects of all environments together that are merged and checked at once
LONGEST_EXCERPT = 1_000  # characters of a source line that is shown
LONGEST_SENTENCE = 500
LONGEST_WORD = 64  # that a known word is suggested for
