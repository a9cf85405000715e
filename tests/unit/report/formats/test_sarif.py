"""Problems as a SARIF log: rules, places, and fingerprints that stay as lines move."""

import json
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given

from reconciler.model.problem import Problem
from reconciler.report import write
from reconciler.report.checked import CheckReport
from tests.unit.report.problem_samples import FINE, MISTAKES, UNKNOWN_KEY, WHOLE_FILE, WRONG_TYPE, checked, documents

RELATIVE_REFERENCE = re.compile(r"(?:[A-Za-z0-9._~/-]|%[0-9A-F]{2})+")


def run_of(document: CheckReport) -> dict[str, Any]:
    log = json.loads(write(document, "sarif", color=False))
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    assert isinstance(run, dict)
    return run


def results_of(*problems: Problem) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = run_of(checked(*problems))["results"]
    return results


def fingerprints_of(*problems: Problem) -> list[str]:
    return [result["partialFingerprints"]["problem/v1"] for result in results_of(*problems)]


def test_a_log_in_full() -> None:
    fingerprint = fingerprints_of(WRONG_TYPE)[0]
    assert run_of(checked(WRONG_TYPE)) == {
        "columnKind": "unicodeCodePoints",
        "results": [
            {
                "level": "error",
                "locations": [
                    {
                        "physicalLocation": {
                            "artifactLocation": {"uri": "policies/base/l4-inference.yaml"},
                            "region": {"startLine": 14, "startColumn": 24, "endColumn": 27},
                        }
                    }
                ],
                "message": {
                    "text": 'spec.maxDrainParallelism: expected an integer of at least 1, got "two". Remedy: write 2'
                },
                "partialFingerprints": {"problem/v1": fingerprint},
                "ruleId": "RC103",
                "ruleIndex": 0,
            }
        ],
        "tool": {"driver": {"name": "reconciler", "rules": [{"id": "RC103"}], "version": "0.9.2"}},
    }


def test_rules_are_the_codes_that_were_used_with_titles_where_given() -> None:
    assert run_of(MISTAKES)["tool"]["driver"]["rules"] == [
        {"id": "RC103", "shortDescription": {"text": "A wrong type"}},
        {"id": "RC107"},
    ]


def test_where_all_is_well_there_are_no_results() -> None:
    assert run_of(FINE)["results"] == []


def test_a_problem_of_a_whole_file_has_no_region_and_its_path_is_escaped() -> None:
    (result,) = results_of(WHOLE_FILE)
    assert result["locations"] == [{"physicalLocation": {"artifactLocation": {"uri": "a%20b.yaml"}}}]


@pytest.mark.parametrize(("path", "uri"), [("50%/é.yaml", "50%25/%C3%A9.yaml"), ("c:x#y?.yaml", "c%3Ax%23y%3F.yaml")])
def test_a_path_becomes_a_relative_reference(path: str, uri: str) -> None:
    (result,) = results_of(msgspec.structs.replace(WHOLE_FILE, file=path))
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri


def test_a_problem_of_no_file_has_no_location() -> None:
    assert "locations" not in results_of(msgspec.structs.replace(WHOLE_FILE, file=""))[0]


def test_the_remedy_follows_a_sentence_that_ends() -> None:
    (result,) = results_of(Problem("a.yaml", 1, 1, "RC1", "did you mean x?", "write x"))
    assert result["message"]["text"] == "did you mean x? Remedy: write x"


def test_a_policy_puts_no_link_into_a_message() -> None:
    linked, plain = (Problem("a.yaml", 1, 1, "RC1", text) for text in ("[here](https://example.org)", "pools[0] (x)"))
    assert results_of(linked)[0]["message"]["text"] == r"\[here\](https://example.org)"
    assert results_of(plain)[0]["message"]["text"] == "pools[0] (x)"


def test_a_fingerprint_stays_when_lines_move() -> None:
    moved = msgspec.structs.replace(WRONG_TYPE, line=99, column=1, excerpt="maxDrainParallelism: two")
    assert fingerprints_of(WRONG_TYPE, UNKNOWN_KEY) == list(reversed(fingerprints_of(moved, UNKNOWN_KEY)))


def test_fingerprints_are_the_same_in_every_release() -> None:
    assert fingerprints_of(WRONG_TYPE) == ["dd2cfa754280d54c35de70637c17ded08b0462e2ba10331f57464de8e8bbe462"]


def test_problems_that_say_the_same_have_fingerprints_of_their_own() -> None:
    again = [msgspec.structs.replace(UNKNOWN_KEY, line=line) for line in (18, 20, 30)]
    assert len(set(fingerprints_of(*again))) == 3
    assert fingerprints_of(*again[:2]) == fingerprints_of(*again)[:2]


@given(documents)
def test_any_log_can_be_read_and_points_at_its_rules(document: CheckReport) -> None:
    run = run_of(document)
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(run["results"]) == len(document.problems)
    for result, problem in zip(run["results"], document.in_order, strict=True):
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert len(result.get("locations", ())) == bool(problem.file)
        for location in result.get("locations", ()):
            assert RELATIVE_REFERENCE.fullmatch(location["physicalLocation"]["artifactLocation"]["uri"])
            region = location["physicalLocation"].get("region")
            assert (region is None) == (problem.line < 1)
            assert region is None or 1 <= region["startColumn"] < region["endColumn"]
    assert len({result["partialFingerprints"]["problem/v1"] for result in run["results"]}) == len(run["results"])
