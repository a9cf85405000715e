"""A document as Markdown for a pull request comment: tables, lists, and folded sections."""

import re
from collections.abc import Iterator, Sequence
from html import escape

from reconciler.model.problem import Problem
from reconciler.report.document import (
    Blank,
    Block,
    FactList,
    Item,
    ItemList,
    Problems,
    ReportDocument,
    ReportNotes,
    Row,
    Section,
    Severity,
    Table,
    TextLine,
    finding_of,
    line,
)
from reconciler.report.formats.text import place_of, span_of, underlined
from reconciler.report.wording import visible

_ALERTS: dict[Severity, str] = {"error": "CAUTION", "warning": "WARNING", "note": "NOTE"}
_TITLE_LEVEL = 3


def write(document: ReportDocument) -> str:
    """The Markdown text, always with a title: a comment cannot be empty."""
    blocks = document.blocks or (line(document.otherwise),)
    paragraphs = [f"{'#' * _TITLE_LEVEL} {inline(document.title)}", *_paragraphs(blocks, _TITLE_LEVEL + 1)]
    return "\n\n".join(paragraphs) + "\n"


def _paragraphs(blocks: Sequence[Block], level: int) -> Iterator[str]:
    """Paragraphs, to be separated by blank lines."""
    for block in blocks:
        match block:
            case TextLine():
                yield _line(block)
            case Blank():
                pass
            case FactList(facts):
                yield "\n".join(f"- **{inline(each.label)}**: {'<br>'.join(map(inline, each.lines))}" for each in facts)
            case ItemList(items):
                yield "\n".join(text for item in items for text in _item(item))
            case Table():
                yield "\n".join(_table(block))
            case ReportNotes(notes):
                yield from (f"> [!{_ALERTS[note.severity]}]\n> {inline(note.text)}" for note in notes)
            case Problems(problems):
                yield "\n".join(text for problem in problems for text in _problem(problem))
            case Section():
                yield from _section(block, level)


def _section(section: Section, level: int) -> Iterator[str]:
    if section.folded:
        yield f"<details><summary>{within_html(section.heading)}</summary>"
        yield from _paragraphs(section.blocks, level)
        yield "</details>"
    else:
        yield f"{'#' * level} {inline(section.heading)}"
        yield from _paragraphs(section.blocks, min(6, level + 1))


def _line(block: TextLine) -> str:
    text = " · ".join(map(inline, block.parts))
    return f"**{text}**" if text and block.tone in {"strong", "bad", "warn", "good"} else text


def _item(item: Item) -> Iterator[str]:
    yield " ".join(filter(None, (f"- {code(item.mark)}", f"**{inline(item.title)}**", code(item.place))))
    for detail in item.details:
        yield f"  - {inline(detail.text)}" + (f" → *{inline(detail.aside)}*" if detail.aside else "")


def _table(table: Table) -> Iterator[str]:
    yield _cells(inline(column.heading) for column in table.columns)
    yield _cells("---:" if column.right else "---" for column in table.columns)
    for group in table.groups:
        if group.heading:
            yield _cells([f"**{inline(group.heading)}**", *("" for _ in table.columns[1:])])
        yield from (_cells(_row(row)) for row in group.rows)


def _row(row: Row) -> list[str]:
    first, *others = map(inline, row.cells)
    return [" ".join(filter(None, (code(row.mark), first))), *others]


def _cells(cells: Iterator[str] | list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _problem(problem: Problem) -> Iterator[str]:
    finding = finding_of(problem)
    span = span_of(finding)
    yield " ".join(
        filter(None, (f"- {code(place_of(finding))}", f"**{inline(problem.code)}**:", inline(problem.sentence)))
    )
    if problem.remedy:
        yield f"  Remedy: {inline(problem.remedy)}"
    if span and problem.excerpt:
        yield from (f"  {text}" for text in fenced([each.rstrip() for each in underlined(problem.excerpt, span)]))


# --- Text escaped for Markdown of GitHub and GitLab, without formatting, links or mentions.

_MARKS = re.compile(r"[\\`*_{}\[\]|~]")
# At the start of a line these would begin a heading, a list, a quote or a rule.
_STARTS = re.compile(r"^([-+#=]|[0-9]+(?=[.)]))")
# These mention people and teams, and link issues and addresses: an invisible comment separates them.
_CALLS = re.compile(
    r"(?<=@)(?=\w)|(?<=#)(?=\d)|(?<=GH-)(?=\d)|(?<=:)(?=//)|(?<=www)(?=\.)|(?<=mailto:)|(?<=xmpp:)", re.IGNORECASE
)
_PARTED = "<!-- -->"
# Two in a line would be a formula.
_DOLLAR = "<span>$</span>"


def inline(text: str) -> str:
    """Text for a paragraph, a list or a table cell."""
    written = _MARKS.sub(r"\\\g<0>", escape(visible(text).strip(), quote=False))
    return _apart(_STARTS.sub(_escaped_start, written))


def within_html(text: str) -> str:
    """Text between HTML tags, where Markdown formatting does not apply."""
    return _apart(escape(visible(text).strip(), quote=False))


def code(text: str) -> str:
    """Code in a paragraph, a list or a table cell."""
    written = inline(text)
    return f"<code>{written}</code>" if written else ""


def fenced(lines: list[str]) -> list[str]:
    """A code block, with a fence longer than any fence in it."""
    shown = [visible(line) for line in lines]
    longest = max((len(run) for line in shown for run in re.findall(r"`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text", *shown, fence]


def _escaped_start(start: re.Match[str]) -> str:
    return f"{start[0]}\\" if start[0].isdigit() else f"\\{start[0]}"


def _apart(text: str) -> str:
    return _CALLS.sub(_PARTED, text).replace("$", _DOLLAR)
