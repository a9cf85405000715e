"""A document with a block of every kind, with texts that are given: harmless, or of someone who means no good."""

from collections.abc import Iterator
from itertools import chain, repeat

from hypothesis import strategies as some

from reconciler.model.problem import Problem
from reconciler.report.document import (
    Blank,
    Block,
    CheckedCount,
    Detail,
    Fact,
    FactList,
    Finding,
    Item,
    ItemList,
    Problems,
    ReportDocument,
    ReportNote,
    ReportNotes,
    Row,
    RowGroup,
    Section,
    Table,
    TableColumn,
    TextLine,
)
from reconciler.report.wording import visible
from tests.unit.report.problem_samples import AWKWARD

HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</details></code></pre></td>",
    "\x1b]0;title\x07\x1b[31mred",
    "\r\n::error file=x::forged",
    "a | b ` c `` d ~~~ e",
    "**bold** _thin_ ~~gone~~ [here](https://example.org) ![see](x.png)",
    "# heading",
    "- item",
    "1. item",
    "+ item",
    "> [!NOTE]",
    "---",
    "===",
    "&lt;b&gt; &#60;b&#62;",
    "https://example.org www.example.org <https://example.org> mailto:a@example.org",
    "@team #12 GH-12 $x$ $`x`$",
    "\\ \\* \\",
    "```",
    "\u202eabc 漢字 e\u0301",
    "    indented",
)
MARKS = "`*_~|<>[]()#+-!@$&;=.:/\\ 1x"
texts = some.one_of(
    some.sampled_from(HOSTILE), some.text(some.sampled_from(AWKWARD + MARKS), min_size=1, max_size=30)
).filter(lambda text: bool(visible(text).strip()))


def documents_with(given: Iterator[str]) -> ReportDocument:
    """Each place of a text in a document takes the next."""
    word = given.__next__
    table = Table(
        (TableColumn(word()), TableColumn(word(), right=True)),
        (
            RowGroup((Row((word(), word()), word(), "bad"), Row((word(), word()), word(), "warn")), word()),
            RowGroup((Row((word(), word()), word(), "good"),)),
        ),
    )
    inner: tuple[Block, ...] = (
        FactList((Fact(word(), (word(), word())), Fact(word(), (word(),)))),
        ItemList((Item(word(), word(), word(), (Detail(word(), word(), "bad"), Detail(word()))), Item(word(), word()))),
    )
    return ReportDocument(
        command="plan",
        title=word(),
        tool_version=word(),
        blocks=(
            TextLine((word(), word()), "strong"),
            Blank(),
            ReportNotes((ReportNote("error", word()), ReportNote("note", word()))),
            table,
            Section(word(), inner),
            Section(word(), (Section(word(), (TextLine((word(),)),)),), folded=True),
            Problems((Problem("p.yaml", 7, 2, word(), word(), word(), 1, word()),)),
        ),
        payload={"text": word()},
        otherwise=word(),
        judged=CheckedCount(2, "object", "hold"),
        findings=(Finding(word(), 3, 0, word(), word(), word(), severity="warning", subject=word()),),
        annotations=(Finding(word(), 3, 0, word(), word(), word(), severity="note"),),
    )


PLAIN = documents_with(repeat("word"))
hostile_documents = some.lists(texts, min_size=60, max_size=60).map(
    lambda given: documents_with(chain(given, repeat("word")))
)
EVERY_TRICK = documents_with(chain(*repeat(HOSTILE, 4)))
