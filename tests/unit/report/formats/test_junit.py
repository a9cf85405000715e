"""Problems as failed tests, in XML that can be read whatever a sentence quotes."""

import xml.etree.ElementTree as ET

import msgspec
from hypothesis import given

from reconciler.report import write
from reconciler.report.checked import CheckReport
from reconciler.report.document import CheckedCount, Finding, ReportDocument
from tests.unit.report.problem_samples import FINE, MISTAKES, WHOLE_FILE, checked, documents


def suite_of(document: CheckReport) -> ET.Element:
    # Written by ourselves a line above, so not a stranger's.
    root = ET.fromstring(write(document, "junit", color=False).encode())  # noqa: S314
    (suite,) = root
    return suite


def test_a_file_with_problems_is_one_failed_test_and_the_others_one_that_passed() -> None:
    assert write(MISTAKES, "junit", color=False) == (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<testsuites tests="2" failures="1">\n'
        '  <testsuite name="reconciler validate" tests="2" failures="1" errors="0" skipped="0">\n'
        '    <testcase classname="reconciler validate" name="policies/base/l4-inference.yaml">\n'
        '      <failure message="spec.maxDrainParallelism: expected an integer of at least 1, got &quot;two&quot;" '
        'type="RC103">policies/base/l4-inference.yaml:14:24: spec.maxDrainParallelism: expected an integer of '
        "at least 1, got &quot;two&quot;\n"
        "remedy: write 2</failure>\n"
        '      <failure message="unknown key &quot;utilisationThreshold&quot;; did you mean '
        '&quot;utilizationThresholdPercent&quot;?" type="RC107">policies/base/l4-inference.yaml:18:3: unknown key '
        "&quot;utilisationThreshold&quot;; did you mean &quot;utilizationThresholdPercent&quot;?</failure>\n"
        "    </testcase>\n"
        '    <testcase classname="reconciler validate" name="other files">\n'
        "      <system-out>11 files without errors</system-out>\n"
        "    </testcase>\n"
        "  </testsuite>\n"
        "</testsuites>\n"
    )


def test_where_all_is_well_one_test_passed() -> None:
    suite = suite_of(FINE)
    assert (suite.get("tests"), suite.get("failures")) == ("1", "0")
    assert suite.findtext("testcase/system-out") == "12 files without errors"


def test_even_of_no_files_there_is_a_test() -> None:
    assert suite_of(msgspec.structs.replace(FINE, files=0)).findtext("testcase/system-out") == "0 files without errors"


def test_where_every_file_has_problems_there_are_no_others() -> None:
    assert [test.get("name") for test in suite_of(checked(WHOLE_FILE))] == ["a b.yaml"]


def test_what_is_no_error_is_no_failure_beside_one() -> None:
    error = Finding("", 0, 0, "FieldConflict", "somebody set it.", subject="NodePool/a100")
    warning = Finding("", 0, 0, "HeldUp", "it waits.", severity="warning", subject="NodePool/a100")
    whole = ReportDocument("plan", "", "0", (), {}, "", CheckedCount(1, "object", "hold"), findings=(error, warning))
    (suite,) = ET.fromstring(write(whole, "junit", color=False))  # noqa: S314 - written a line above
    (test,) = suite
    assert [(each.tag, each.get("type")) for each in test] == [("failure", "FieldConflict"), ("system-out", None)]


@given(documents)
def test_any_suite_can_be_read_and_counts_its_tests(document: CheckReport) -> None:
    suite = suite_of(document)
    files = {problem.file for problem in document.problems}
    assert int(suite.get("tests", "")) == len(suite)
    assert int(suite.get("failures", "")) == len(files) == len(suite.findall("testcase[failure]"))
    assert len(suite.findall("testcase/failure")) == len(document.problems)
    assert len(suite.findall("testcase/system-out")) <= 1
