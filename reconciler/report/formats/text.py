"""A document for a terminal: aligned by display width, never wrapped."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from reconciler.model.problem import Problem
from reconciler.report.document import (
    Blank,
    Block,
    FactList,
    Finding,
    ItemList,
    Problems,
    ReportDocument,
    ReportNotes,
    Row,
    RowGroup,
    Section,
    Severity,
    Table,
    TextLine,
    Tone,
    finding_of,
)
from reconciler.report.wording import columns, of_one_width, visible

# --- Terminal colours, or none.

_CODES: dict[Tone, int] = {"strong": 1, "dim": 2, "bad": 31, "good": 32, "warn": 33}


class Paint(msgspec.Struct, frozen=True):
    """Colour codes around texts, if colours are enabled."""

    color: bool

    def bold(self, text: str) -> str:
        return self.toned(text, "strong")

    def dim(self, text: str) -> str:
        return self.toned(text, "dim")

    def toned(self, text: str, tone: Tone) -> str:
        return f"\x1b[{_CODES[tone]}m{text}\x1b[0m" if self.color and text and tone in _CODES else text


APART = "   "
INDENT = "  "
# Longer values overflow their column, so that one long value does not widen the column for all.
LONGEST_ALIGNED = 60

_NOTES: dict[Severity, tuple[str, Tone]] = {"error": ("!", "bad"), "warning": ("!", "warn"), "note": ("note:", "dim")}


def write(document: ReportDocument, color: bool) -> str:
    """The text; empty without blocks."""
    paint = Paint(color)
    lines = [line.rstrip() for block in document.blocks for line in _lines(block, "", paint)]
    return "".join(f"{line}\n" for line in lines)


def _lines(block: Block, indent: str, paint: Paint) -> Iterator[str]:
    match block:
        case TextLine(parts, tone):
            yield indent + paint.toned(APART.join(map(visible, parts)).rstrip(), tone)
        case Blank():
            yield ""
        case FactList():
            yield from _facts(block, indent, paint)
        case ItemList():
            yield from _items(block, indent, paint)
        case Table():
            yield from table_lines(block, block.columns[0].heading, indent, indent, paint)
        case ReportNotes():
            yield from _notes(block, indent, paint)
        case Problems(problems):
            yield from (indent + line for problem in problems for line in problem_lines(problem, paint))
        case Section():
            yield from _section(block, indent, paint)


def _section(section: Section, indent: str, paint: Paint) -> Iterator[str]:
    inner = indent + INDENT
    blocks = section.blocks
    first = blocks[0] if blocks else None
    # If the first column of a table has no heading, the heading of the section shares the line of the others.
    if isinstance(first, Table) and not first.columns[0].heading and any(each.heading for each in first.columns):
        yield from table_lines(first, section.heading, indent, inner, paint)
        blocks = blocks[1:]
    else:
        yield indent + paint.bold(visible(section.heading).rstrip())
    for block in blocks:
        yield from _lines(block, inner, paint)


def _facts(facts: FactList, indent: str, paint: Paint) -> Iterator[str]:
    labels = widest(cell(fact.label) for fact in facts.facts)
    for fact in facts.facts:
        label = cell(fact.label)
        # Continuation lines are only indented.
        beside = [paint.dim(label) + room(label, labels), *(room("", labels) for _ in fact.lines[1:])]
        for left, right in zip(beside, fact.lines or ("",), strict=True):
            yield f"{indent or INDENT}{left}{INDENT}{visible(right)}"


def _items(items: ItemList, indent: str, paint: Paint) -> Iterator[str]:
    marks = widest(cell(item.mark) for item in items.items)
    titles = widest((cell(item.title) for item in items.items if item.place), LONGEST_ALIGNED)
    details = [detail for item in items.items for detail in item.details]
    texts = widest((cell(detail.text) for detail in details if detail.aside), LONGEST_ALIGNED)
    outer = indent or INDENT
    for item in items.items:
        mark = paint.toned(cell(item.mark), item.tone) + room(cell(item.mark), marks)
        title = padded(cell(item.title), titles if item.place else 0)
        yield f"{outer}{mark} {title}{INDENT}{paint.dim(cell(item.place))}"
        for detail in item.details:
            text = padded(cell(detail.text), texts if detail.aside else 0)
            yield f"{outer}{room('', marks + 1)}{INDENT}{text}{INDENT}{paint.toned(cell(detail.aside), detail.tone)}"


def _notes(notes: ReportNotes, indent: str, paint: Paint) -> Iterator[str]:
    for note in notes.notes:
        mark, tone = _NOTES[note.severity]
        yield f"{indent}{paint.toned(mark, tone)} {visible(note.text)}"


# --- Padding by display width.


def cell(text: str) -> str:
    """Visible text of a cell, without surrounding blanks, which would look like misalignment."""
    return visible(text).strip()


def widest(texts: Iterable[str], most: int | None = None) -> int:
    """Width of the widest text; texts wider than `most` are ignored."""
    widths = (columns(text) for text in texts)
    return max((width for width in widths if most is None or width <= most), default=0)


def room(text: str, width: int) -> str:
    """Padding up to the width; empty for a wider text."""
    return " " * max(0, width - columns(text))


def padded(text: str, width: int) -> str:
    return text + room(text, width)


# --- Tables for a terminal: columns as wide as their content, numbers right-aligned.

GAP = "  "
_PLAIN = Paint(color=False)


def table_lines(table: Table, corner: str, outer: str, indent: str, paint: Paint) -> Iterator[str]:
    """Lines of the table; rows are indented below the heading of their group. `corner` is the heading above the first
    column, and `outer` its indent."""
    marks = widest(cell(row.mark) for group in table.groups for row in group.rows)
    top = outer + cell(corner)
    firsts = [_first(row, _lead(group, indent), marks, _PLAIN) for group in table.groups for row in group.rows]
    widths = (widest([top, *firsts]), *_widths(table))
    headings = [cell(column.heading) for column in table.columns[1:]]
    if corner or any(headings):
        title = outer + paint.bold(cell(corner)) + room(top, widths[0])
        yield GAP.join([title, *_aligned(table, headings, widths, paint.dim)])
    for group in table.groups:
        if group.heading:
            yield indent + cell(group.heading)
        for row in group.rows:
            lead = _lead(group, indent)
            first = _first(row, lead, marks, paint) + room(_first(row, lead, marks, _PLAIN), widths[0])
            yield GAP.join([first, *_aligned(table, [cell(each) for each in row.cells[1:]], widths, str)])


def _lead(group: RowGroup, indent: str) -> str:
    return indent + (GAP if group.heading else "")


def _first(row: Row, lead: str, marks: int, paint: Paint) -> str:
    """First cell of a row; without marks in the table there is no mark column."""
    mark = cell(row.mark)
    apart = f"{room(mark, marks)} " if marks else ""
    return lead + paint.toned(mark, row.tone) + apart + cell(row.cells[0])


def _widths(table: Table) -> Iterator[int]:
    """Widths of the columns after the first."""
    for number, column in enumerate(table.columns[1:], 1):
        yield widest([cell(column.heading), *(cell(row.cells[number]) for group in table.groups for row in group.rows)])


def _aligned(table: Table, cells: Sequence[str], widths: Sequence[int], painted: Callable[[str], str]) -> Iterator[str]:
    """The cells after the first."""
    for column, text, width in zip(table.columns[1:], cells, widths[1:], strict=True):
        space = room(text, width)
        yield space + painted(text) if column.right else painted(text) + space


# --- Columns of a finding in its line.


class TextSpan(msgspec.Struct, frozen=True, gc=False):
    """Columns count characters from 1; the end is exclusive."""

    start: int
    end: int


def span_of(finding: Finding) -> TextSpan | None:
    """The span of a finding, at least one column wide; None for a whole file or a whole line."""
    if finding.line < 1 or finding.column < 1:
        return None
    return TextSpan(finding.column, finding.column + max(1, finding.width))


def place_of(finding: Finding) -> str:
    """File of the finding, with line and column if known."""
    if finding.line < 1:
        return finding.file
    return f"{finding.file}:{finding.line}" + (f":{finding.column}" if finding.column > 0 else "")


# --- Problems for a terminal: place, sentence, source line and caret.

_TONES: dict[str, Tone] = {"error": "bad", "warning": "warn"}


def problem_lines(problem: Problem, paint: Paint) -> list[str]:
    """One to three lines for a problem."""
    finding = finding_of(problem)
    span = span_of(finding)
    place = visible(place_of(finding))
    fault = paint.toned(f"{problem.severity}[{visible(problem.code)}]", _TONES[problem.severity])
    head = ": ".join(part for part in (paint.bold(place), fault, visible(problem.sentence)) if part).rstrip()
    if span and problem.excerpt:
        return [head, *_excerpt(problem, span, paint)]
    return [head, f"      remedy: {visible(problem.remedy)}".rstrip()] if problem.remedy else [head]


def _excerpt(problem: Problem, span: TextSpan, paint: Paint) -> list[str]:
    """The source line with its number, and below it the carets and the remedy."""
    source, carets = underlined(problem.excerpt, span)
    gutter = f"  {problem.line} |"
    blank = "|".rjust(len(gutter))
    return [
        f"{paint.dim(gutter)} {source}".rstrip(),
        f"{paint.dim(blank)} {carets} {visible(problem.remedy)}".rstrip(),
    ]


# --- The source line of a problem, and the carets below it.
#
# Both lines are built from the same pieces, one per source character, so that carets are aligned whatever the display
# width. Only the text around the problem is processed, because a line may be as long as a file.

LINE_COLUMNS = 100
TAB = "    "  # constant width, so that a cut line is displayed like the full line
CUT = "..."


def underlined(source: str, span: TextSpan) -> tuple[str, str]:
    """Displayed part of a source line, and a line with carets below the span."""
    source = of_one_width(source.rstrip("\r\n"))
    # Something missing at the end of a line is marked one column after the end.
    start = min(span.start - 1, len(source))
    first, last = _window(source, start)
    before = (CUT if first else "") + _shown(source[first:start])
    after = _shown(source[start:last]) + (CUT if last < len(source) else "")
    carets = max(1, columns(_shown(source[start : min(span.end - 1, last)])))
    return (before + after).rstrip(), " " * columns(before) + "^" * carets


def _window(source: str, start: int) -> tuple[int, int]:
    """Displayed part of a line: half of the columns right of the start, unless one side needs less."""
    left = source[max(0, start - LINE_COLUMNS) : start][::-1]
    right = source[start : start + LINE_COLUMNS]
    wanted = _fitting(right, LINE_COLUMNS // 2)
    first = start - _fitting(left, LINE_COLUMNS - _room(right[:wanted]))
    return first, start + _fitting(right, LINE_COLUMNS - _room(source[first:start]))


def _fitting(text: str, room: int) -> int:
    """Number of characters of the text that fit."""
    count = 0
    for each in text:
        room -= _room(each)
        if room < 0:
            break
        count += 1
    return count


def _room(text: str) -> int:
    """Width of the text; combining marks count too, since there may be thousands."""
    return sum(max(1, columns(_shown(each))) for each in text)


def _shown(text: str) -> str:
    return TAB.join(map(visible, text.split("\t")))
