"""ReportDocument: the content of a report, independent of the format."""

from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeVar

import msgspec

from reconciler.model.problem import Problem
from reconciler.report.json_schema import told

# --- Building blocks of a document: a small closed set that every format can write.
#
# Texts in blocks are unescaped: each format escapes them, whatever a policy or a cluster contains.

Tone = Literal["plain", "strong", "dim", "good", "warn", "bad"]
Severity = Literal["error", "warning", "note"]


class TextLine(msgspec.Struct, frozen=True):
    """One line; its parts are separated by spaces."""

    parts: tuple[str, ...]
    tone: Tone = "plain"


class Blank(msgspec.Struct, frozen=True):
    """A blank line, in formats that use one."""


class Fact(msgspec.Struct, frozen=True):
    label: str
    lines: tuple[str, ...]


class FactList(msgspec.Struct, frozen=True):
    """Labels on the left, their values on the right."""

    facts: tuple[Fact, ...]


class Detail(msgspec.Struct, frozen=True):
    """A line below an item, with an aside."""

    text: str
    aside: str = ""
    tone: Tone = "plain"  # of the aside


class Item(msgspec.Struct, frozen=True):
    """One object of a list: its mark, name, and origin."""

    mark: str
    title: str
    place: str = ""
    details: tuple[Detail, ...] = ()
    tone: Tone = "plain"  # of the mark


class ItemList(msgspec.Struct, frozen=True):
    """A list of objects. Their places are aligned, and so are the asides of their details."""

    items: tuple[Item, ...]


class TableColumn(msgspec.Struct, frozen=True):
    """A column; numbers are right-aligned."""

    heading: str
    right: bool = False


class Row(msgspec.Struct, frozen=True):
    """A row with one cell per column; the mark precedes the first cell."""

    cells: tuple[str, ...]
    mark: str = ""
    tone: Tone = "plain"  # of the mark


class RowGroup(msgspec.Struct, frozen=True):
    """Rows below a common heading."""

    rows: tuple[Row, ...]
    heading: str = ""


class Table(msgspec.Struct, frozen=True):
    """A table. Within a section, a first column without a heading takes the heading of the section."""

    columns: tuple[TableColumn, ...]
    groups: tuple[RowGroup, ...]


class ReportNote(msgspec.Struct, frozen=True):
    severity: Severity
    text: str


class ReportNotes(msgspec.Struct, frozen=True):
    notes: tuple[ReportNote, ...]


class Problems(msgspec.Struct, frozen=True):
    """Problems of policies, with their source lines."""

    problems: tuple[Problem, ...]


class Section(msgspec.Struct, frozen=True):
    """Blocks below a heading; formats for small displays may fold the section."""

    heading: str
    blocks: tuple["Block", ...]
    folded: bool = False


Block = TextLine | Blank | FactList | ItemList | Table | ReportNotes | Problems | Section


def line(text: str, tone: Tone = "plain") -> TextLine:
    """A line with one part."""
    return TextLine((text,), tone)


class Finding(msgspec.Struct, frozen=True, gc=False, order=True):
    """An annotation of a policy line; line 0 means the whole file, column 0 the whole line."""

    file: str
    line: int
    column: int
    code: str
    sentence: str
    remedy: str = ""
    width: int = 1
    severity: Severity = "error"
    subject: str = ""  # identifies the finding across runs, together with its code; otherwise the sentence does


class CheckedCount(msgspec.Struct, frozen=True):
    """Number of checked objects, including those without findings, and their name."""

    number: int
    noun: str
    fault: str  # what the check looks for: error


class ReportDocument(msgspec.Struct, frozen=True):
    """A report. The blocks are for people, the payload for programs, the findings for pipelines, the annotations for
    pull requests."""

    command: str  # that made the document, such as validate
    title: str
    tool_version: str
    blocks: tuple[Block, ...]
    payload: dict[str, Any]  # JSON
    otherwise: str  # text of a page without blocks
    judged: CheckedCount
    findings: tuple[Finding, ...] = ()
    annotations: tuple[Finding, ...] = ()
    titles: tuple[tuple[str, str], ...] = ()  # one-line title per finding code


def finding_of(problem: Problem) -> Finding:
    """A problem of a policy as an annotation of its line."""
    # A known line has a column: the first if no other is known.
    return told(Finding, problem, column=max(1, problem.column), width=max(1, problem.width), subject="")


# --- Isolation of report parts: a part that raises is left out and the report says so.


T = TypeVar("T")

_LONGEST = 200  # characters of an error


class SectionContainment:
    """Error isolation for the parts of one report."""

    def __init__(self) -> None:
        self._notes: dict[str, None] = {}

    def part(self, what: str, run: Callable[[], T], instead: T) -> T:
        """Result of the part, or `instead` if the part raises."""
        try:
            return run()
        except Exception as error:  # noqa: BLE001 - whatever it is, the rest of the report is told
            text = f"{type(error).__name__}: {error}"[:_LONGEST]
            self._notes[f"the report lacks {what}, because of a bug in reconciler: {text}"] = None
            return instead

    def several(self, what: str, run: Callable[[], Iterable[T]]) -> tuple[T, ...]:
        """The same for a part that is a list; empty if the part raises."""
        none: tuple[T, ...] = ()
        return self.part(what, lambda: tuple(run()), none)

    @property
    def notes(self) -> tuple[str, ...]:
        """The missing parts, one sentence each."""
        return tuple(self._notes)
