"""A Document: what is reported, such that every format can write it."""

from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeVar

import msgspec

from reconciler.model.problem import Problem

# --- What a document is laid out of: a small closed set of blocks, which every format for people can write.
#
# Texts in blocks are plain: whoever writes a format makes them fit for it, whatever a policy or a cluster put into
# them.

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


class Finding(msgspec.Struct, frozen=True, gc=False, order=True):
    """What is shown beside a line of a policy; a line of 0 means the file as a whole, a column of 0 the whole line."""

    file: str
    line: int
    column: int
    code: str
    sentence: str
    remedy: str = ""
    width: int = 1
    severity: Severity = "error"
    subject: str = ""  # what it is about; it is known again by this, or else by its sentence


class CheckedCount(msgspec.Struct, frozen=True):
    """How many were looked at, those that nothing was found about too, and what they are called."""

    number: int
    noun: str
    fault: str  # what was looked for: error


class ReportDocument(msgspec.Struct, frozen=True):
    """People read the blocks, programs the payload; pipelines show findings, pull requests the annotations."""

    command: str  # that made it: validate
    title: str
    tool_version: str
    blocks: tuple[Block, ...]
    payload: dict[str, Any]  # JSON
    otherwise: str  # what a page says when there are no blocks
    judged: CheckedCount
    findings: tuple[Finding, ...] = ()
    annotations: tuple[Finding, ...] = ()
    titles: tuple[tuple[str, str], ...] = ()  # of a finding's code, in one line


def finding_of(problem: Problem) -> Finding:
    """A fault in a policy, as it is shown beside its line."""
    # Where a line is known, so is the column: the first, if nothing better.
    column = max(1, problem.column)
    return Finding(
        problem.file,
        problem.line,
        column,
        problem.code,
        problem.sentence,
        problem.remedy,
        max(1, problem.width),
        problem.severity,
    )


# --- What a report is about: which policies, which cluster, when, and by which version.


T = TypeVar("T")

_LONGEST = 200  # characters of an error


class SectionContainment:
    """Of one report."""

    def __init__(self) -> None:
        self._notes: dict[str, None] = {}

    def part(self, what: str, run: Callable[[], T], instead: T) -> T:
        """What the part comes to, or `instead` where it raises."""
        try:
            return run()
        except Exception as error:  # noqa: BLE001 - whatever it is, the rest of the report is told
            text = f"{type(error).__name__}: {error}"[:_LONGEST]
            self._notes[f"{what} could not be told, by a fault of reconciler: {text}"] = None
            return instead

    def several(self, what: str, run: Callable[[], Iterable[T]]) -> tuple[T, ...]:
        """The same of a part that is a list; none of it where it raises."""
        none: tuple[T, ...] = ()
        return self.part(what, lambda: tuple(run()), none)

    @property
    def notes(self) -> tuple[str, ...]:
        """Which parts are missing, a sentence each."""
        return tuple(self._notes)
