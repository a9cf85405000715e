"""A document as a page: whole by itself, and built the same whatever its texts say."""

import re
from html.parser import HTMLParser

from hypothesis import given, settings

from reconciler.report import write
from reconciler.report.document import (
    CheckedCount,
    Detail,
    Fact,
    FactList,
    Item,
    ItemList,
    ReportDocument,
    ReportNote,
    ReportNotes,
    Row,
    RowGroup,
    Section,
    Table,
    TableColumn,
    line,
)
from tests.unit.report.formats.block_samples import EVERY_TRICK, PLAIN, hostile_documents
from tests.unit.report.problem_samples import FINE, MISTAKES

NEVER_CLOSED = frozenset({"meta", "br", "!doctype"})


class Reader(HTMLParser):
    """Owner of what was read: tags and attributes in their order, and the words."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.words = ""
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(f"{tag} {attrs}")
        if tag not in NEVER_CLOSED:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag
        self.tags.append(f"/{tag}")

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self.words += data


def body(*blocks: Table | ItemList | FactList | ReportNotes | Section) -> str:
    document = ReportDocument("plan", "Plan", "0.9.2", blocks, {}, "Nothing.", CheckedCount(0, "object", "hold"))
    return write(document, "html", color=False).split("<h1>Plan</h1>\n")[1].split("</main>")[0]


def test_a_table_has_heads_groups_and_numbers_on_the_right() -> None:
    table = Table(
        (TableColumn("pool"), TableColumn("nodes", right=True)),
        (RowGroup((Row(("empty", "6"), "-", "bad"),), "also without this change"),),
    )
    assert body(table) == (
        '<div class="wide"><table>\n'
        '<thead><tr><th scope="col" class="left">pool</th><th scope="col" class="right">nodes</th></tr></thead>\n'
        "<tbody>\n"
        '<tr><th scope="rowgroup" colspan="2">also without this change</th></tr>\n'
        '<tr><th scope="row"><span class="mark bad">-</span> empty</th><td class="right">6</td></tr>\n'
        "</tbody>\n"
        "</table></div>\n"
    )


def test_lists_facts_notes_and_sections() -> None:
    items = ItemList((Item("~", "GpuPool/a100", "a.yaml:3", (Detail("minSize: 8", "in place", "dim"),), "warn"),))
    facts = FactList((Fact("why", ("80 of 120", "a.yaml:3")),))
    notes = ReportNotes((ReportNote("warning", "pods could not be read"),))
    assert body(Section("held", (items, facts)), Section("more", (notes,), folded=True)) == (
        "<section><h2>held</h2>\n"
        "<ul>\n"
        '<li><span class="mark warn">~</span> <strong>GpuPool/a100</strong> <code>a.yaml:3</code>\n'
        "<ul>\n"
        '<li><span>minSize: 8</span> <em class="dim">in place</em></li>\n'
        "</ul>\n"
        "</li>\n"
        "</ul>\n"
        "<dl>\n<dt>why</dt>\n<dd>80 of 120</dd>\n<dd>a.yaml:3</dd>\n</dl>\n"
        "</section>\n"
        "<details><summary>more</summary>\n"
        '<p class="note warning"><strong>Warning:</strong> pods could not be read</p>\n'
        "</details>\n"
    )


def test_problems_have_their_excerpt() -> None:
    told = Reader(write(MISTAKES, "html", color=False))
    assert "  maxDrainParallelism: two\n                       ^^^" in told.words
    assert "2 errors in 12 files" in told.words


def test_where_all_is_well_the_page_says_so() -> None:
    assert "No errors in 12 files." in Reader(write(FINE, "html", color=False)).words


def test_a_page_fetches_nothing_and_runs_nothing() -> None:
    page = write(PLAIN, "html", color=False)
    assert "default-src &#x27;none&#x27;" in page or "default-src 'none'" in page
    assert not re.search(r"https?:|<script|<link|<img|@import|url\(|\bsrc=|\bhref=|\bon\w+=", page)
    assert "prefers-color-scheme: dark" in page


@settings(max_examples=40)
@given(hostile_documents)
def test_no_text_changes_what_a_page_is_made_of(document: ReportDocument) -> None:
    assert Reader(write(document, "html", color=False)).tags == Reader(write(PLAIN, "html", color=False)).tags


def test_no_trick_gets_through() -> None:
    page = Reader(write(EVERY_TRICK, "html", color=False))
    assert page.tags == Reader(write(PLAIN, "html", color=False)).tags
    assert "<script>alert(1)</script>" in page.words
    assert r"\u202eabc" in page.words


def test_a_line_is_a_paragraph_of_its_parts() -> None:
    assert body(Section("x", (line("a & b", "bad"),))).splitlines()[1] == '<p class="bad"><span>a &amp; b</span></p>'
