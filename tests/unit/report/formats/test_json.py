"""Problems as programs read them: one shape, the same bytes for the same problems."""

import json

from hypothesis import given

from reconciler.report import write
from reconciler.report.checked import CheckReport
from tests.unit.report.problem_samples import FINE, WRONG_TYPE, checked, documents


def test_the_object_has_a_version_the_tool_and_every_problem() -> None:
    assert write(checked(WRONG_TYPE), "json", color=False) == (
        "{\n"
        '  "files": 1,\n'
        '  "format_version": 1,\n'
        '  "problems": [\n'
        "    {\n"
        '      "code": "RC103",\n'
        '      "column": 24,\n'
        '      "file": "policies/base/l4-inference.yaml",\n'
        '      "line": 14,\n'
        '      "remedy": "write 2",\n'
        '      "sentence": "spec.maxDrainParallelism: expected an integer of at least 1, got \\"two\\"",\n'
        '      "severity": "error",\n'
        '      "width": 3\n'
        "    }\n"
        "  ],\n"
        '  "tool": {\n'
        '    "name": "reconciler",\n'
        '    "version": "0.9.2"\n'
        "  }\n"
        "}\n"
    )


def test_where_all_is_well_the_list_is_empty() -> None:
    assert json.loads(write(FINE, "json", color=False))["problems"] == []


@given(documents)
def test_it_holds_what_the_problems_hold(document: CheckReport) -> None:
    told = json.loads(write(document, "json", color=False))
    assert told["tool"]["version"] == _whole(document.tool_version)
    assert [(each["file"], each["line"], each["sentence"]) for each in told["problems"]] == [
        (_whole(each.file), each.line, _whole(each.sentence)) for each in sorted(document.problems)
    ]


@given(documents)
def test_it_is_text_that_prints(document: CheckReport) -> None:
    told = write(document, "json", color=False)
    assert all(line.isprintable() for line in told.split("\n"))
    assert told.encode().decode() == told


def _whole(text: str) -> str:
    """Halves of surrogate pairs are no text."""
    return "".join("\ufffd" if "\ud800" <= each <= "\udfff" else each for each in text)
