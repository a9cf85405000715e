"""What a document is laid out of: a small closed set of blocks, which every format for people can write.

Texts in blocks are plain: whoever writes a format makes them fit for it, whatever a policy or a cluster put into them.
"""

from typing import Literal

import msgspec

from reconciler.model.problem import Problem

Tone = Literal["plain", "strong", "dim", "good", "warn", "bad"]
Severity = Literal["error", "warning", "note"]


class TextLine(msgspec.Struct, frozen=True):
    """One line; its parts stand a little apart."""

    parts: tuple[str, ...]
    tone: Tone = "plain"


class Blank(msgspec.Struct, frozen=True):
    """Space between lines, where a format needs it."""


class Fact(msgspec.Struct, frozen=True):
    """A label, and the lines beside it."""

    label: str
    lines: tuple[str, ...]


class FactList(msgspec.Struct, frozen=True):
    """Labels on the left, what they mean on the right."""

    facts: tuple[Fact, ...]


class Detail(msgspec.Struct, frozen=True):
    """A line below an item, and what it comes to."""

    text: str
    aside: str = ""
    tone: Tone = "plain"  # of the aside


class Item(msgspec.Struct, frozen=True):
    """One object of a list: what happens to it, its name, and where it was written."""

    mark: str
    title: str
    place: str = ""
    details: tuple[Detail, ...] = ()
    tone: Tone = "plain"  # of the mark


class ItemList(msgspec.Struct, frozen=True):
    """A list of objects; their places stand below one another, and so do the asides of their details."""

    items: tuple[Item, ...]


class TableColumn(msgspec.Struct, frozen=True):
    """Numbers stand on the right."""

    heading: str
    right: bool = False


class Row(msgspec.Struct, frozen=True):
    """One cell a column; the mark stands before the first."""

    cells: tuple[str, ...]
    mark: str = ""
    tone: Tone = "plain"  # of the mark


class RowGroup(msgspec.Struct, frozen=True):
    """Rows that belong together."""

    rows: tuple[Row, ...]
    heading: str = ""


class Table(msgspec.Struct, frozen=True):
    """Within a section, a first column without a heading takes that of the section."""

    columns: tuple[TableColumn, ...]
    groups: tuple[RowGroup, ...]


class ReportNote(msgspec.Struct, frozen=True):
    """Something to be minded, and what to do about it."""

    severity: Severity
    text: str
    remedy: str = ""


class ReportNotes(msgspec.Struct, frozen=True):
    """Several of them."""

    notes: tuple[ReportNote, ...]


class Problems(msgspec.Struct, frozen=True):
    """Faults in policies, with the source lines they stand on."""

    problems: tuple[Problem, ...]


class Section(msgspec.Struct, frozen=True):
    """Blocks below a heading; where there is little room, one may be folded away."""

    heading: str
    blocks: tuple["Block", ...]
    folded: bool = False


Block = TextLine | Blank | FactList | ItemList | Table | ReportNotes | Problems | Section


def line(text: str, tone: Tone = "plain") -> TextLine:
    """A line of one part."""
    return TextLine((text,), tone)
