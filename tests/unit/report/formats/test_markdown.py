"""Documents for comments on pull requests: readable as they are, and whatever a name tries, it stays a name."""

import re
from html import unescape

import pytest
from hypothesis import given, settings
from markdown_it import MarkdownIt

from reconciler.model.problem import Problem
from reconciler.report import write
from reconciler.report.document import (
    CheckedCount,
    Detail,
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
    TextLine,
    line,
)
from reconciler.report.formats.markdown import inline
from reconciler.report.wording import visible
from tests.unit.report.formats.block_samples import EVERY_TRICK, HOSTILE, PLAIN, hostile_documents, texts
from tests.unit.report.problem_samples import FINE, MISTAKES, checked

READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
TAGS = re.compile(r"<(/?(code|span|details|summary)|br|!-- --)>")


def page(*blocks: TextLine | Table | ItemList | ReportNotes | Section) -> str:
    document = ReportDocument("plan", "Plan", "0.9.2", blocks, {}, "Nothing.", CheckedCount(0, "object", "hold"))
    return write(document, "markdown", color=False)


def structure(text: str) -> list[str]:
    """What Markdown makes of a text, words left out."""
    found = []
    for token in READER.parse(text):
        found.append(token.type)
        found += [each.type for each in token.children or () if each.type not in {"text", "html_inline"}]
        if token.type == "html_block":
            found += [each for each in re.findall(r"</?\w+", token.content) if "span" not in each]
    return found


STRUCTURE = structure(write(PLAIN, "markdown", color=False))


def tags(text: str) -> list[str]:
    """Every tag that a browser would see, comments left out."""
    raw = "".join(
        each.content for token in READER.parse(text) for each in (token, *(token.children or ())) if "html" in each.type
    )
    return [tag for tag in re.findall(r"<[^>]*>", raw) if tag not in {"<!-- -->", "<span>", "</span>"}]


def test_blocks_become_tables_lists_alerts_and_details() -> None:
    table = Table(
        (TableColumn(""), TableColumn("nodes", right=True)),
        (RowGroup((Row(("empty", "6"), "-"),), "also without this change"),),
    )
    items = ItemList((Item("~", "GpuPool/a100", "a.yaml:3", (Detail("minSize: 8 -> 10", "in place"), Detail("text"))),))
    notes = ReportNotes((ReportNote("warning", "pods could not be read"),))
    assert page(
        TextLine(("now $1", "then $2")), notes, items, Section("a100", (table,)), Section("more", (line("x"),), True)
    ) == (
        "### Plan\n\n"
        "now <span>$</span>1 · then <span>$</span>2\n\n"
        "> [!WARNING]\n> pods could not be read\n\n"
        "- <code>\\~</code> **GpuPool/a100** <code>a.yaml:3</code>\n"
        "  - minSize: 8 -&gt; 10 → *in place*\n"
        "  - text\n\n"
        "#### a100\n\n"
        "|  | nodes |\n"
        "| --- | ---: |\n"
        "| **also without this change** |  |\n"
        "| <code>\\-</code> empty | 6 |\n\n"
        "<details><summary>more</summary>\n\n"
        "x\n\n"
        "</details>\n"
    )


def test_problems_have_their_excerpt_in_a_fence() -> None:
    assert write(MISTAKES, "markdown", color=False) == (
        "### Policies\n\n"
        "- <code>policies/base/l4-inference.yaml:14:24</code> **RC103**: spec.maxDrainParallelism: expected an integer "
        'of at least 1, got "two"\n'
        "  Remedy: write 2\n"
        "  ```text\n"
        "    maxDrainParallelism: two\n"
        "                         ^^^\n"
        "  ```\n"
        '- <code>policies/base/l4-inference.yaml:18:3</code> **RC107**: unknown key "utilisationThreshold"; '
        'did you mean "utilizationThresholdPercent"?\n\n'
        "2 errors in 12 files\n"
    )


def test_where_all_is_well_the_comment_says_so() -> None:
    assert write(FINE, "markdown", color=False) == "### Policies\n\nNo errors in 12 files.\n"


def test_a_fence_is_longer_than_any_in_what_it_quotes() -> None:
    told = write(checked(Problem("p.yaml", 1, 1, "RC1", "is wrong", "", 1, "a: ``` b")), "markdown", color=False)
    assert told.count("````") == 2
    assert structure(told).count("fence") == 1


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("<script>", "&lt;script&gt;"),
        ("a | b", r"a \| b"),
        ("`x`", r"\`x\`"),
        ("- x", r"\- x"),
        ("12. x", r"12\. x"),
        ("@team", "@<!-- -->team"),
        ("see #12", "see #<!-- -->12"),
        ("https://example.org", "https:<!-- -->//example.org"),
        ("\x1b[31m", r"\\x1b\[31m"),
        ("$x$", "<span>$</span>x<span>$</span>"),
    ],
)
def test_what_would_mean_something_is_written_out(text: str, written: str) -> None:
    assert inline(text) == written


@given(texts)
def test_a_text_reads_as_it_was_meant(text: str) -> None:
    (opening, paragraph, closing) = READER.parse(inline(text))
    assert (opening.type, closing.type) == ("paragraph_open", "paragraph_close")
    words = "".join(each.content for each in paragraph.children or () if each.type == "text")
    dollars = sum(each.content == "$" for each in paragraph.children or ())
    assert words == visible(text).strip() or dollars
    assert all(each.type == "text" or TAGS.fullmatch(each.content) for each in paragraph.children or ())


@settings(max_examples=40)
@given(hostile_documents)
def test_no_text_changes_what_a_document_is_made_of(document: ReportDocument) -> None:
    told = write(document, "markdown", color=False)
    assert structure(told) == STRUCTURE
    assert tags(told) == tags(write(PLAIN, "markdown", color=False))


def test_no_trick_gets_through() -> None:
    told = write(EVERY_TRICK, "markdown", color=False)
    assert structure(told) == STRUCTURE
    assert "<script" not in told
    assert "@team" not in told
    assert "alert(1)" in unescape(told)
    assert len(HOSTILE) > 20
