"""A table for a terminal: columns as wide as what stands in them, numbers on the right."""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from reconciler.report.blocks import Row, RowGroup, Table
from reconciler.report.formats.alignment import cell, room, widest
from reconciler.report.formats.paint import Paint

GAP = "  "
_PLAIN = Paint(color=False)


class Corner(msgspec.Struct, frozen=True):
    """What stands above the first column, and where it begins."""

    text: str
    indent: str


def table_lines(table: Table, corner: Corner, indent: str, paint: Paint) -> Iterator[str]:
    """Rows below the heading of their group stand further in."""
    marks = widest(cell(row.mark) for group in table.groups for row in group.rows)
    top = corner.indent + cell(corner.text)
    firsts = [_first(row, _lead(group, indent), marks, _PLAIN) for group in table.groups for row in group.rows]
    widths = (widest([top, *firsts]), *_widths(table))
    headings = [cell(column.heading) for column in table.columns[1:]]
    if corner.text or any(headings):
        title = corner.indent + paint.bold(cell(corner.text)) + room(top, widths[0])
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
    """Where no row of the table has a mark, there is no room for one."""
    mark = cell(row.mark)
    apart = f"{room(mark, marks)} " if marks else ""
    return lead + paint.toned(mark, row.tone) + apart + cell(row.cells[0])


def _widths(table: Table) -> Iterator[int]:
    """Of the columns after the first."""
    for number, column in enumerate(table.columns[1:], 1):
        yield widest([cell(column.heading), *(cell(row.cells[number]) for group in table.groups for row in group.rows)])


def _aligned(table: Table, cells: Sequence[str], widths: Sequence[int], painted: Callable[[str], str]) -> Iterator[str]:
    """The cells after the first."""
    for column, text, width in zip(table.columns[1:], cells, widths[1:], strict=True):
        space = room(text, width)
        yield space + painted(text) if column.right else painted(text) + space
