"""Scenarios are read like policies: every problem at once, each where it stands, with a remedy."""

import re
from pathlib import Path

import pytest

from reconciler.model.bundle import Text
from reconciler.simulate.scenario.reading import Read, read_scenario, scenario_text
from tests.lab.places import REPOSITORY

HEAD = "apiVersion: gpu.scheduling/v1\nkind: Scenario\nmetadata: {name: story}\nspec:\n"
WHOLE = HEAD + "  duration: 1h\n  policies: [{folder: policies}]\n"
EXAMPLES = sorted(REPOSITORY.glob("examples/*/*.yaml"))


def read(content: str) -> Read:
    return read_scenario(Text("s.yaml", content.encode()))


def told(content: str) -> list[str]:
    return [f"{each.line}:{each.column} {each.code} {each.sentence}; {each.remedy}" for each in read(content).problems]


def test_the_shortest_scenario_is_read() -> None:
    found = read(WHOLE)
    assert found.problems == ()
    assert found.scenario is not None
    assert (found.name, found.scenario.duration.milliseconds) == ("story", 3_600_000)


@pytest.mark.parametrize(
    ("added", "problem"),
    [
        ('  start: "9999-12-31T23:30:00Z"', "7:3 RC105 the scenario ends after the year 9999; set an earlier start"),
        (
            '  start: "2026-02-30T08:00:00Z"',
            '7:3 RC105 "2026-02-30T08:00:00Z" is not a valid time; set a time such as',
        ),
        (
            '  start: "0000-01-01T00:00:00Z"',
            '7:3 RC105 "0000-01-01T00:00:00Z" is not a valid time; set a time such as',
        ),
        ("  durations: 1h", '7:3 RC107 unknown key "durations"; did you mean "duration"?; '),
        ("  workloads: [{name: a}]", "7:15 RC104 spec.workloads[0] has no arrival pattern; set exactly one of"),
        (
            "  workloads: [{name: a, constant: {pods: 1}, inference: {least: 0, most: 1}}]",
            "7:15 RC104 spec.workloads[0] has 2 arrival patterns; set exactly one of",
        ),
        (
            "  workloads: [{name: a, steady: {perHour: 1}}]",
            "7:15 RC104 spec.workloads[0].runsFor is missing: jobs must end; add runsFor",
        ),
        ("  faults: [{fault: NodeDeath, at: 2h}]", "7:31 RC310 the scenario ends before this time"),
        ("  expect: [{measure: evictions}]", "7:12 RC104 spec.expect[0] has no bounds; add atLeast or atMost"),
        ("  expect: [{measure: evictions, pool: a, atMost: 1}]", "7:33 RC310 evictions is only available for all"),
        ("  cluster: {nodes: [{count: 1}]}", "7:21 RC104 spec.cluster.nodes[0] has neither a pool nor"),
        ("  cluster: {objects: ['kind: Pod']}", "7:23 RC105 this is not a Kubernetes object; write one object"),
        ("  cluster: {objects: ['{']}", "7:23 RC105 "),
        ("  faults: [{fault: SlowKubelets, at: 1m, pool: a}]", "7:42 RC310 a SlowKubelets has no pool"),
        (
            "  cluster: {nodes: [{name: x, count: 1, capacity: {memory: 40}}]}",
            (
                "7:52 RC208 spec.cluster.nodes[0].capacity.memory: 40 means 40 bytes, which is implausibly small; "
                "write 40Gi"
            ),
        ),
        (
            "  market: {machines: [{name: x, capacity: {gpus: 8}, pricePerHour: {spot: '1.00'}}]}",
            '7:44 RC318 there is no resource "gpus"; did you mean "nvidia.com/gpu"?; write nvidia.com/gpu',
        ),
        (
            "  workloads: [{name: a, constant: {pods: 1}, resources: {memory: 8}}]",
            "7:58 RC208 spec.workloads[0].resources.memory: 8 means 8 bytes, which is implausibly small; write 8Gi",
        ),
        ("  start: tomorrow", '7:10 RC106 spec.start: expected a time such as "2026-11-16T08:00:00Z"'),
    ],
)
def test_what_is_wrong_is_told_where_it_stands(added: str, problem: str) -> None:
    assert any(each.startswith(problem) for each in told(f"{WHOLE}{added}\n")), told(f"{WHOLE}{added}\n")


def test_revisions_come_in_order_from_the_beginning() -> None:
    late = "  duration: 1h\n  policies: [{folder: a, at: 1m}, {folder: b, at: 1m}]\n"
    assert [each.partition(";")[0].split(" ", 2)[2] for each in told(HEAD + late)] == [
        "the first policies are in force from the start",
        "spec.policies[1].at is not after the previous revision",
    ]


def test_a_file_of_policies_is_no_scenario() -> None:
    assert any("RC102" in each for each in told(WHOLE.replace("Scenario", "GpuPool")))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_what_is_written_is_what_was_read(path: Path) -> None:
    first = read(path.read_text(encoding="utf-8"))
    assert first.scenario is not None
    again = read(scenario_text(first.name, first.scenario))
    assert again == first


def test_what_the_page_about_simulating_shows_is_read() -> None:
    page = (REPOSITORY / "docs" / "how-to" / "simulate.md").read_text(encoding="utf-8")
    whole, claims, added, traced = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert told(whole + added) == []
    assert told(WHOLE + claims) == []
    assert told(HEAD.removesuffix("spec:\n") + traced) == []


def test_boards_have_at_most_16_gpus_and_name_their_own_as_unhealthy() -> None:
    for fields, is_right in (
        ("islands: [8, 8]", True),
        ("islands: [8, 9]", False),
        ("islands: []", False),
        ("islands: [4, 4], unhealthy: [7]", True),
        ("islands: [4, 4], unhealthy: [8]", False),
    ):
        assert (told(WHOLE + f"  cluster: {{boards: [{{pool: a100, {fields}}}]}}\n") == []) == is_right, fields
