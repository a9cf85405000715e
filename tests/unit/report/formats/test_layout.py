"""Blocks on a terminal: aligned by the columns that characters take, indented by what they belong to."""

import pytest
from hypothesis import given, settings

from reconciler.report import FORMATS, write
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
    ReportDocument,
    ReportNote,
    ReportNotes,
    Row,
    RowGroup,
    Section,
    Severity,
    Table,
    TableColumn,
    TextLine,
    line,
)
from tests.unit.report.formats.block_samples import EVERY_TRICK, hostile_documents
from tests.unit.report.formats.test_text import COLOR


def text(*blocks: Block, color: bool = False) -> str:
    return write(
        ReportDocument("plan", "Plan", "0.9.2", blocks, {}, "", CheckedCount(0, "object", "hold")), "text", color
    )


TABLE = Table(
    (TableColumn(""), TableColumn("nodes", right=True), TableColumn("when")),
    (
        RowGroup((Row(("empty", "6", "now"), "-", "bad"),), "also without this change"),
        RowGroup((Row(("busy, evicted", "1234", ""), "-/+"), Row(("漢字", "5", "later"), "~")), "because of it"),
    ),
)


def test_the_heading_of_a_section_stands_in_the_corner_of_its_table() -> None:
    assert text(Section("a100: 120 nodes", (TABLE, line("Limits: 128")))) == (
        "a100: 120 nodes        nodes  when\n"
        "  also without this change\n"
        "    -   empty              6  now\n"
        "  because of it\n"
        "    -/+ busy, evicted   1234\n"
        "    ~   漢字               5  later\n"
        "  Limits: 128\n"
    )


def test_a_table_by_itself_has_its_own_corner_and_no_room_for_marks_it_lacks() -> None:
    table = Table(
        (TableColumn("pool"), TableColumn("nodes", right=True)), (RowGroup((Row(("a100", "120")), Row(("l4", "6")))),)
    )
    assert text(table) == "pool  nodes\na100    120\nl4        6\n"


def test_places_and_effects_of_a_list_stand_below_one_another() -> None:
    items = ItemList(
        (
            Item("~", "GpuPool/a100", "a.yaml:14", (Detail("taints: + x", "drifts all"), Detail("no effect known"))),
            Item("-", "NodeProvisioner/a100", "a.yaml:23", (Detail("minSize: 8 -> 10", "in place"),)),
            Item("+", "GpuPool/without-a-place-and-longer-than-others"),
        )
    )
    assert text(items) == (
        "  ~ GpuPool/a100          a.yaml:14\n"
        "      taints: + x       drifts all\n"
        "      no effect known\n"
        "  - NodeProvisioner/a100  a.yaml:23\n"
        "      minSize: 8 -> 10  in place\n"
        "  + GpuPool/without-a-place-and-longer-than-others\n"
    )


def test_one_very_long_value_does_not_push_the_others_aside() -> None:
    items = ItemList((Item("~", "x", "", (Detail("a", "one"), Detail("b" * 70, "two"))),))
    assert text(items).splitlines()[1:] == ["      a  one", f"      {'b' * 70}  two"]


def test_facts_have_their_labels_on_the_left() -> None:
    facts = FactList((Fact("why", ("80 of 120", "a.yaml:23")), Fact("to stop it", ("freeze",)), Fact("empty", ())))
    assert text(facts) == "  why         80 of 120\n              a.yaml:23\n  to stop it  freeze\n  empty\n"


def test_notes_are_marked_by_how_grave_they_are() -> None:
    notes = ReportNotes((ReportNote("error", "gone"), ReportNote("warning", "unread"), ReportNote("note", "old")))
    assert text(notes) == "! gone\n! unread\nnote: old\n"


def test_parts_of_a_line_stand_apart_and_a_section_indents() -> None:
    blocks = (
        TextLine(("Cost", "now $1")),
        Blank(),
        Section("Held", (ItemList((Item("!", "x"),)), Section("In", (line("y"),)))),
    )
    assert text(*blocks) == "Cost   now $1\n\nHeld\n  ! x\n  In\n    y\n"


def test_marks_and_effects_have_the_colors_of_their_tone() -> None:
    told = text(
        ItemList((Item("-", "x", "a:1", (Detail("y", "gone", "bad"),), "bad"),)), line("well", "good"), color=True
    )
    assert told == ("  \x1b[31m-\x1b[0m x  \x1b[2ma:1\x1b[0m\n      y  \x1b[31mgone\x1b[0m\n\x1b[32mwell\x1b[0m\n")


@settings(max_examples=60)
@given(hostile_documents)
def test_only_what_prints_reaches_a_terminal_and_no_text_makes_lines(document: ReportDocument) -> None:
    told = write(document, "text", color=False)
    assert all(each.isprintable() and each == each.rstrip() for each in told.split("\n"))
    assert COLOR.sub("", write(document, "text", color=True)) == told
    assert len(told.splitlines()) == len(write(EVERY_TRICK, "text", color=False).splitlines())


@settings(max_examples=40)
@given(hostile_documents)
def test_every_format_of_every_document_is_whole_lines_that_print(document: ReportDocument) -> None:
    for form in FORMATS:
        told = write(document, form, color=False)
        assert told.endswith("\n")
        assert all(each.isprintable() for each in told.split("\n")), form
        assert told.encode().decode() == told


def test_a_terminal_sees_no_escape_and_a_log_no_command() -> None:
    assert "\x1b" not in write(EVERY_TRICK, "text", color=False)
    commands = write(EVERY_TRICK, "github", color=False).splitlines()
    assert len(commands) == 1
    assert commands[0].startswith("::notice ")


def document_of(*annotations: Finding) -> ReportDocument:
    return ReportDocument(
        "plan", "Plan", "0.9.2", (), {}, "", CheckedCount(3, "object", "hold"), annotations, annotations
    )


@pytest.mark.parametrize(
    ("severity", "count", "commands"),
    [("warning", 12, ["warning"] * 10 + ["notice"]), ("note", 12, ["notice"] * 10), ("note", 10, ["notice"] * 10)],
)
def test_github_shows_ten_of_a_kind_and_is_told_how_many_more(
    severity: Severity, count: int, commands: list[str]
) -> None:
    many = [Finding("a.yaml", n, 0, "GpuPool/a", "drifts", severity=severity) for n in range(1, count + 1)]
    lines = write(document_of(*many), "github", color=False).splitlines()
    assert [each.split("::")[1].split(" ")[0] for each in lines] == commands
    assert lines[0] == f"::{commands[0]} file=a.yaml,line=1,title=GpuPool/a::drifts"
    if count > 10:
        assert lines[-1].endswith("without an annotation; list all with: reconciler plan -o text")
        assert ("3 more notices" if severity == "note" else "2 more warnings") in lines[-1]


def test_what_is_only_warned_of_was_skipped_and_the_others_passed() -> None:
    found = Finding("a.yaml", 3, 0, "NotOurs", "is <not> ours", "adopt it", severity="warning", subject="NodePool/a")
    assert write(document_of(found), "junit", color=False).splitlines()[2:] == [
        '  <testsuite name="reconciler plan" tests="2" failures="0" errors="0" skipped="1">',
        '    <testcase classname="reconciler plan" name="NodePool/a">',
        '      <skipped message="is &lt;not&gt; ours">a.yaml:3: is &lt;not&gt; ours',
        "remedy: adopt it</skipped>",
        "    </testcase>",
        '    <testcase classname="reconciler plan" name="other objects">',
        "      <system-out>2 objects without holds</system-out>",
        "    </testcase>",
        "  </testsuite>",
        "</testsuites>",
    ]
