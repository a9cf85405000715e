"""What all formats of a report have in common."""

import pytest
from hypothesis import given

from reconciler.report import FORMATS, write
from reconciler.report.checked import CheckReport
from tests.unit.report.problem_samples import FINE, documents


def test_the_formats_are_those_of_the_command_line() -> None:
    assert FORMATS == ("text", "json", "markdown", "github", "sarif", "junit", "html")


def test_an_unknown_format_is_refused_with_those_there_are() -> None:
    with pytest.raises(
        ValueError, match='no format "yaml"; choose one of text, json, markdown, github, sarif, junit, html'
    ):
        write(FINE, "yaml", color=False)


@given(documents)
def test_the_order_in_which_problems_were_found_does_not_show(document: CheckReport) -> None:
    turned = CheckReport(document.problems[::-1], document.files, document.tool_version, document.titles)
    for form in FORMATS:
        assert write(turned, form, color=False) == write(document, form, color=False)


@given(documents)
def test_every_report_is_whole_lines_that_print(document: CheckReport) -> None:
    for form in FORMATS:
        told = write(document, form, color=False)
        assert told == "" or told.endswith("\n")
        assert all(line.isprintable() for line in told.split("\n")), form
        assert told.encode().decode() == told


@given(documents)
def test_only_text_has_colors(document: CheckReport) -> None:
    for form in FORMATS[1:]:
        assert write(document, form, color=True) == write(document, form, color=False)
