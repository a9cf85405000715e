"""A document as a self-contained HTML page: no scripts, no external resources, light and dark mode."""

from collections.abc import Iterator, Sequence
from html import escape

import msgspec

from reconciler.model.problem import Problem
from reconciler.report.document import (
    Blank,
    Block,
    FactList,
    Item,
    ItemList,
    Problems,
    ReportDocument,
    ReportNote,
    ReportNotes,
    Row,
    Section,
    Table,
    TextLine,
    finding_of,
    line,
)
from reconciler.report.formats.text import place_of, span_of, underlined
from reconciler.report.wording import visible

# --- Style of the page: the reader's fonts and sizes, and both colour schemes.

STYLE = """
:root { color-scheme: light dark; --text: #1f2328; --page: #ffffff; --quiet: #59636e; --rule: #d1d9e0; --soft: #f6f8fa;
  --good: #116329; --warn: #7d4e00; --bad: #b3171f; }
@media (prefers-color-scheme: dark) { :root { --text: #e6edf3; --page: #0d1117; --quiet: #9198a1; --rule: #3d444d;
  --soft: #151b23; --good: #56d364; --warn: #e3b341; --bad: #ff8182; } }
body { margin: 0 auto; max-width: 76rem; padding: 1.5rem; color: var(--text); background: var(--page);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; } h2, h3, h4, h5, h6 { font-size: 1.1rem; margin: 1.5rem 0 0.5rem; }
p { margin: 0.5rem 0; } p > span + span { margin-left: 1.2em; }
span, em, strong, code, td, th, dd, dt, li, h1, h2, h3, summary { unicode-bidi: isolate; }
code, pre, .mark { font-family: ui-monospace, monospace; font-size: 0.9em; }
code { color: var(--quiet); }
pre { background: var(--soft); padding: 0.6rem 0.8rem; overflow-x: auto; overflow-wrap: normal; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
th, td { padding: 0.25rem 0.8rem; border-bottom: 1px solid var(--rule); text-align: left; font-weight: normal;
  vertical-align: top; }
thead th, th[scope=rowgroup] { color: var(--quiet); font-size: 0.9em; } th[scope=rowgroup] { padding-top: 0.8rem; }
.right { text-align: right; white-space: nowrap; }
ul { padding-left: 1.2rem; } main > ul, section > ul { list-style: none; padding-left: 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.2rem 1rem; }
dt { color: var(--quiet); grid-column: 1; }
dd { margin: 0; grid-column: 2; }
em { font-style: normal; color: var(--quiet); margin-left: 1em; }
.mark { display: inline-block; min-width: 2em; }
.strong { font-weight: 600; } .dim, footer { color: var(--quiet); } .good { color: var(--good); }
.warn { color: var(--warn); } .bad { color: var(--bad); }
.note { border-left: 0.25rem solid var(--rule); background: var(--soft); padding: 0.4rem 0.8rem; }
.note.warning { border-color: var(--warn); } .note.error { border-color: var(--bad); }
figure { margin: 0.5rem 0; } figure svg { display: block; width: 100%; height: auto; color: var(--text); }
figcaption { color: var(--quiet); font-size: 0.9em; }
details { margin: 1rem 0; } summary { cursor: pointer; }
footer { margin-top: 2rem; font-size: 0.85em; }
"""


# --- Pictures: inline SVG, with a text alternative.


class Picture(msgspec.Struct, frozen=True):
    """A picture. Its SVG is inserted unescaped: only drawings of reconciler are allowed here."""

    name: str  # used as file name
    heading: str
    words: str
    svg: str

    @property
    def alone(self) -> str:
        """A separate SVG file: dark on white, since no page sets its colours."""
        opening, rest = self.svg.split(">", 1)
        white = '<rect width="100%" height="100%" fill="#ffffff"/>'
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{opening} color="#1f2328">{white}{rest}\n'


# Even if a text contained markup, the browser would neither run nor fetch anything.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def write(document: ReportDocument, pictures: Sequence[Picture] = ()) -> str:
    """The page, never empty. Pictures precede the first section."""
    blocks = document.blocks or (line(document.otherwise),)
    first = next((at for at, block in enumerate(blocks) if isinstance(block, Section)), len(blocks))
    title = _text(document.title)
    lines = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{title}</title>",
        "<style>",
        *STYLE.strip().splitlines(),
        "</style>",
        "</head>",
        "<body>",
        "<main>",
        f"<h1>{title}</h1>",
        *_lines(blocks[:first], 2),
        *(text for picture in pictures for text in _picture(picture)),
        *_lines(blocks[first:], 2),
        "</main>",
        f"<footer>reconciler {_text(document.tool_version)}</footer>",
        "</body>",
        "</html>",
    ]
    return "".join(f"{each}\n" for each in lines)


def _lines(blocks: Sequence[Block], level: int) -> Iterator[str]:
    for block in blocks:
        match block:
            case TextLine(parts, tone):
                yield f"<p{_toned(tone)}>{''.join(_part(part) for part in parts)}</p>"
            case Blank():
                pass
            case FactList():
                yield from _facts(block)
            case ItemList(items):
                yield from ["<ul>", *(text for item in items for text in _item(item)), "</ul>"]
            case Table():
                yield from _table(block)
            case ReportNotes(notes):
                yield from map(_note, notes)
            case Problems(problems):
                yield from (text for problem in problems for text in _problem(problem))
            case Section():
                yield from _section(block, level)


def _section(section: Section, level: int) -> Iterator[str]:
    heading = _text(section.heading)
    if section.folded:
        yield f"<details><summary>{heading}</summary>"
        yield from _lines(section.blocks, level)
        yield "</details>"
    else:
        yield f"<section><h{level}>{heading}</h{level}>"
        yield from _lines(section.blocks, min(6, level + 1))
        yield "</section>"


def _picture(picture: Picture) -> Iterator[str]:
    """The SVG is drawn by reconciler from numbers; its texts are already escaped."""
    yield f"<section><h2>{_text(picture.heading)}</h2>"
    yield f'<figure role="img" aria-label="{_text(picture.words)}">{picture.svg}'
    yield f"<figcaption>{_text(picture.words)}</figcaption></figure></section>"


def _facts(facts: FactList) -> Iterator[str]:
    yield "<dl>"
    for fact in facts.facts:
        yield f"<dt>{_text(fact.label)}</dt>"
        yield from (f"<dd>{_text(each)}</dd>" for each in fact.lines)
    yield "</dl>"


def _item(item: Item) -> Iterator[str]:
    place = f" <code>{_text(item.place)}</code>" if item.place else ""
    yield f"<li>{_mark(item)}<strong>{_text(item.title)}</strong>{place}"
    if item.details:
        yield "<ul>"
        for detail in item.details:
            aside = f" <em{_toned(detail.tone)}>{_text(detail.aside)}</em>" if detail.aside else ""
            yield f"<li>{_part(detail.text)}{aside}</li>"
        yield "</ul>"
    yield "</li>"


def _table(table: Table) -> Iterator[str]:
    kinds = ["right" if column.right else "left" for column in table.columns]
    columns = zip(kinds, table.columns, strict=True)
    heads = [_cell(f'th scope="col" class="{kind}"', column.heading) for kind, column in columns]
    yield '<div class="wide"><table>'
    yield f"<thead><tr>{''.join(heads)}</tr></thead>"
    for group in table.groups:
        yield "<tbody>"
        if group.heading:
            heading = _cell(f'th scope="rowgroup" colspan="{len(kinds)}"', group.heading)
            yield f"<tr>{heading}</tr>"
        for row in group.rows:
            first, *others = row.cells
            cells = [_cell(f'td class="{kind}"', each) for kind, each in zip(kinds[1:], others, strict=True)]
            yield f'<tr><th scope="row">{_mark(row)}{_text(first)}</th>{"".join(cells)}</tr>'
        yield "</tbody>"
    yield "</table></div>"


def _cell(opening: str, text: str) -> str:
    return f"<{opening}>{_text(text)}</{opening[:2]}>"


def _note(note: ReportNote) -> str:
    word = f"<strong>{note.severity.capitalize()}:</strong>"
    return f'<p class="note {note.severity}">{word} {_text(note.text)}</p>'


def _problem(problem: Problem) -> Iterator[str]:
    finding = finding_of(problem)
    span = span_of(finding)
    place = f"<code>{_text(place_of(finding))}</code> " if place_of(finding) else ""
    yield f'<p class="note {problem.severity}">{place}<strong>{_text(problem.code)}</strong> {_text(problem.sentence)}'
    yield f"<br>Remedy: {_text(problem.remedy)}</p>" if problem.remedy else "</p>"
    if span and problem.excerpt:
        yield f"<pre>{'&#10;'.join(_text(each) for each in underlined(problem.excerpt, span))}</pre>"


def _mark(marked: Item | Row) -> str:
    return f'<span class="mark {marked.tone}">{_text(marked.mark)}</span> ' if marked.mark else ""


def _part(text: str) -> str:
    return f"<span>{_text(text)}</span>"


def _toned(tone: str) -> str:
    return "" if tone == "plain" else f' class="{tone}"'


def _text(text: str) -> str:
    return escape(visible(text))
