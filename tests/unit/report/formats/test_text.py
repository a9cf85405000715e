"""Problems as a person reads them: places, excerpts, carets, colours, and nothing that steers a terminal."""

import re
import unicodedata

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from reconciler.model.problem import Problem
from reconciler.report import write
from reconciler.report.checked import CheckReport
from reconciler.report.formats.text import CUT, LINE_COLUMNS
from tests.unit.report.problem_samples import FINE, MISTAKES, UNKNOWN_KEY, WHOLE_FILE, WRONG_TYPE, checked, documents

COLOR = re.compile(r"\x1b\[\d+m")


def excerpt_of(source: str, column: int, width: int = 1) -> tuple[str, str]:
    """The shown line and the carets of a problem, without their gutter."""
    problem = Problem("p.yaml", 7, column, "RC1", "is wrong", "mend it", width, source)
    _, shown, carets, _ = write(checked(problem), "text", color=False).splitlines()
    assert shown.startswith("  7 |")
    assert carets.startswith("    | ")
    assert carets.endswith("^ mend it")
    return shown[6:], carets[6:].removesuffix(" mend it")


def test_a_mistake_is_shown_as_in_the_design() -> None:
    assert write(MISTAKES, "text", color=False) == (
        "policies/base/l4-inference.yaml:14:24: error[RC103]: spec.maxDrainParallelism: expected an integer of "
        'at least 1, got "two"\n'
        "  14 |   maxDrainParallelism: two\n"
        "     |                        ^^^ write 2\n"
        'policies/base/l4-inference.yaml:18:3: error[RC107]: unknown key "utilisationThreshold"; did you mean '
        '"utilizationThresholdPercent"?\n'
        "2 errors in 12 files\n"
    )


def test_colors_are_bold_paths_red_errors_and_dim_gutters() -> None:
    assert write(checked(WRONG_TYPE), "text", color=True) == (
        "\x1b[1mpolicies/base/l4-inference.yaml:14:24\x1b[0m: \x1b[31merror[RC103]\x1b[0m: spec.maxDrainParallelism: "
        'expected an integer of at least 1, got "two"\n'
        "\x1b[2m  14 |\x1b[0m   maxDrainParallelism: two\n"
        "\x1b[2m     |\x1b[0m                        ^^^ write 2\n"
        "1 error in 1 file\n"
    )


@pytest.mark.parametrize("color", [False, True])
def test_where_all_is_well_nothing_is_said(color: bool) -> None:
    assert write(FINE, "text", color) == ""


def test_a_problem_of_a_whole_file_has_no_line_and_its_remedy_below() -> None:
    assert write(checked(WHOLE_FILE), "text", color=False) == (
        "a b.yaml: error[RC101]: is not UTF-8\n      remedy: save it as UTF-8\n1 error in 1 file\n"
    )


def test_a_problem_without_excerpt_keeps_its_place_and_its_remedy() -> None:
    told = write(checked(msgspec.structs.replace(WRONG_TYPE, excerpt="")), "text", color=False)
    assert told.splitlines()[0].startswith("policies/base/l4-inference.yaml:14:24: error[RC103]: ")
    assert told.splitlines()[1] == "      remedy: write 2"


def test_a_problem_of_no_file_begins_with_the_error() -> None:
    told = write(CheckReport((Problem("", 0, 0, "RC100", "there is no policy"),), 0, "0.9.2"), "text", color=False)
    assert told == "error[RC100]: there is no policy\n1 error\n"


def test_an_excerpt_without_remedy_has_carets_all_the_same() -> None:
    told = write(checked(msgspec.structs.replace(WRONG_TYPE, remedy="")), "text", color=False)
    assert told.splitlines()[2] == "     |                        ^^^"


def test_what_is_missing_at_the_end_of_a_line_is_marked_behind_it() -> None:
    assert excerpt_of("name:", 6, 4) == ("name:", "     ^")


def test_tabs_are_as_wide_above_as_below() -> None:
    assert excerpt_of("\tname:\tx", 8) == ("    name:    x", "             ^")


def test_wide_and_joining_characters_count_by_the_columns_they_take() -> None:
    assert excerpt_of("漢字: e\u0301 x", 8) == ("漢字: e\u0301 x", "        ^")
    assert excerpt_of("a: 漢字", 4, 2) == ("a: 漢字", "   ^^^^")


def test_what_does_not_print_is_written_out_and_marked_whole() -> None:
    assert excerpt_of("a: \x1b[31m\u202e\xa0x", 4) == (r"a: \x1b[31m\u202e\xa0x", "   ^^^^")


def test_a_long_line_is_cut_around_the_caret() -> None:
    shown, carets = excerpt_of(f"{'a' * 150}<here>{'b' * 150}", 151, 6)
    assert shown[len(carets) - 6 : len(carets)] == "<here>"
    assert carets.count("^") == 6
    assert shown.startswith(CUT)
    assert shown.endswith(CUT)
    assert len(shown) == LINE_COLUMNS + 2 * len(CUT)


@pytest.mark.parametrize("column", [1, LINE_COLUMNS])
def test_a_line_that_just_fits_is_not_cut(column: int) -> None:
    assert excerpt_of("a" * LINE_COLUMNS, column) == ("a" * LINE_COLUMNS, " " * (column - 1) + "^")


def test_a_long_line_keeps_the_end_that_is_near() -> None:
    line = "".join(chr(ord("a") + at % 26) for at in range(1000))
    assert excerpt_of(line, 3)[0] == line[:LINE_COLUMNS] + CUT
    assert excerpt_of(line, 999)[0] == CUT + line[-LINE_COLUMNS:]


def test_carets_end_where_a_long_line_is_cut() -> None:
    shown, carets = excerpt_of("k: " + "v" * 500, 4, 500)
    assert len(carets) + len(CUT) == len(shown)


def test_neither_a_line_as_long_as_a_file_nor_a_tower_of_marks_is_shown_in_full() -> None:
    assert len(excerpt_of("x" * 1_000_000, 500_000)[0]) <= LINE_COLUMNS + 2 * len(CUT)
    assert len(excerpt_of("e" + "\u0301" * 10_000, 1)[0]) <= LINE_COLUMNS + len(CUT)


def test_line_ends_are_no_part_of_an_excerpt() -> None:
    assert excerpt_of("a: b\r\n", 4) == ("a: b", "   ^")


def _cells(line: str) -> list[str]:
    """One entry a column: a wide character takes its own and an empty one."""
    return [cell for each in line for cell in ([each, ""] if unicodedata.east_asian_width(each) == "W" else [each])]


@given(some.text("ab漢é\t\x1b ", min_size=1, max_size=300), some.data())
def test_carets_stand_below_what_they_mean(source: str, data: some.DataObject) -> None:
    start = data.draw(some.integers(0, len(source) - 1))
    end = data.draw(some.integers(start + 1, len(source)))
    shown, carets = excerpt_of(source, start + 1, end - start)
    meant = source[start:end].replace("\t", "    ").replace("\x1b", r"\x1b")
    marked = "".join(_cells(shown)[carets.index("^") : len(carets)])
    # What is meant may be cut where the line is, and space at the end of a line is never shown.
    assert marked or not meant.strip()
    assert meant.startswith(marked)


@given(documents)
def test_only_what_prints_reaches_a_terminal(document: CheckReport) -> None:
    told = write(document, "text", color=False)
    assert all(line.isprintable() for line in told.split("\n"))
    assert all(line == line.rstrip() for line in told.split("\n"))
    assert told.encode().decode() == told


@given(documents)
def test_colors_change_nothing_but_the_look(document: CheckReport) -> None:
    colored = write(document, "text", color=True)
    assert COLOR.sub("", colored) == write(document, "text", color=False)
    assert set(COLOR.findall(colored)) <= {"\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m"}


@given(documents)
def test_each_problem_has_one_to_three_lines_and_the_last_line_counts_them(document: CheckReport) -> None:
    lines = write(document, "text", color=False).splitlines()
    count = len(document.problems)
    assert count + bool(count) <= len(lines) <= 3 * count + 1
    files = rf" in {document.files} files?" if document.files else ""
    assert not lines or re.fullmatch(rf"{count} errors?{files}", lines[-1])


def test_problems_come_by_file_line_and_column() -> None:
    told = write(checked(UNKNOWN_KEY, WHOLE_FILE, WRONG_TYPE), "text", color=False)
    assert re.findall(r"RC\d+", told) == ["RC101", "RC103", "RC107"]
