"""A document for a person at a terminal: aligned by the columns that characters take, never wrapped."""

from collections.abc import Iterator

from reconciler.report.blocks import (
    Blank,
    Block,
    FactList,
    ItemList,
    Problems,
    ReportNotes,
    Section,
    Severity,
    Table,
    TextLine,
    Tone,
)
from reconciler.report.document import ReportDocument
from reconciler.report.formats.alignment import cell, padded, room, widest
from reconciler.report.formats.paint import Paint
from reconciler.report.formats.text_problems import problem_lines
from reconciler.report.formats.text_table import Corner, table_lines
from reconciler.report.visible import visible

APART = "   "
INDENT = "  "
# What is longer stands out of its column: one long value must not push all others off the screen.
LONGEST_ALIGNED = 60

_NOTES: dict[Severity, tuple[str, Tone]] = {"error": ("!", "bad"), "warning": ("!", "warn"), "note": ("note:", "dim")}


def write(document: ReportDocument, color: bool) -> str:
    """Nothing when there is nothing to say."""
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
            yield from table_lines(block, Corner(block.columns[0].heading, indent), indent, paint)
        case ReportNotes():
            yield from _notes(block, indent, paint)
        case Problems(problems):
            yield from (indent + line for problem in problems for line in problem_lines(problem, paint))
        case Section():
            yield from _section(block, indent, paint)


def _section(section: Section, indent: str, paint: Paint) -> Iterator[str]:
    inner = indent + INDENT
    blocks = section.blocks
    if blocks and isinstance(blocks[0], Table) and _shares_its_line(blocks[0]):
        yield from table_lines(blocks[0], Corner(section.heading, indent), inner, paint)
        blocks = blocks[1:]
    else:
        yield indent + paint.bold(visible(section.heading).rstrip())
    for block in blocks:
        yield from _lines(block, inner, paint)


def _shares_its_line(table: Table) -> bool:
    """Whether the heading of the section stands beside those of the table, since the first column has none."""
    return not table.columns[0].heading and any(column.heading for column in table.columns)


def _facts(facts: FactList, indent: str, paint: Paint) -> Iterator[str]:
    labels = widest(cell(fact.label) for fact in facts.facts)
    for fact in facts.facts:
        label = cell(fact.label)
        # Beside each line but the first there is only room.
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
        if note.remedy:
            yield f"{indent}{room('', len(mark) + 1)}remedy: {visible(note.remedy)}"
