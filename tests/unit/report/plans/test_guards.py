"""What a person reads of guards: that a plan is blocked, before all else; what was counted; and the ways on."""

import json
import re
from typing import Any

import msgspec
import pytest
from jsonschema import Draft7Validator

from reconciler import report
from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.plan_output import PlanOutput
from reconciler.fleet.fleet import Fleet
from reconciler.model.desired import Declared
from reconciler.model.plan.decision import Hold
from reconciler.model.policy.guards import ChangeGuard
from reconciler.model.quantity import Duration
from reconciler.plan.files.dump import PlanningResult
from reconciler.report.document import ReportDocument
from reconciler.report.explain.subject import about, parse_subject
from reconciler.report.plans.build import describe_decisions, planned_of
from reconciler.report.plans.guard_section import with_ways_on
from reconciler.report.plans.plan_document import plan_document
from reconciler.report.plans.plan_shape import plan_schema
from reconciler.report.sentences import sentence
from reconciler.report.status.overview import overview_document, overview_of
from tests.unit.plan.drain import stage as drain_stage
from tests.unit.plan.guards.stage import REVISION, World
from tests.unit.plan.scaling import stage as scaling_stage
from tests.unit.plan.scaling.stage import POLICY
from tests.unit.policy.texts import convert
from tests.unit.report.plans.samples import ALONE

OVER: dict[str, Any] = {
    "pools": {"a100": {"nodes": 120, "busy": 80}},
    "guards": {"fleet": {"perPlan": {"maxRemovedNodes": 24, "maxDisruptedGPUs": 64, "maxRemovedPercent": 20}}},
    "does": ["scale-down a100 80-85", "edit a100 removed 86-119; replaced 0-27; blocked 28-79"],
}


def scene(case: dict[str, Any]) -> PlanningResult:
    world = World(case)
    return PlanningResult(world.inputs, world.fleet, world.planned())


def document(case: dict[str, Any]) -> ReportDocument:
    setting = msgspec.structs.replace(ALONE, revision=REVISION, now=World(case).now)
    return plan_document(planned_of(setting, scene(case), None))


def text(case: dict[str, Any]) -> list[str]:
    return report.write(document(case), "text", color=False).splitlines()


def test_a_blocked_plan_says_so_first_and_ends_with_the_ways_on() -> None:
    told = text(OVER)
    assert told[0] == (
        "BLOCKED by guard fleet: 640 GPUs in use would be disrupted, 64 allowed; 40 nodes removed, 24 allowed"
    )
    at = told.index("Guard fleet, policies/a100.yaml:4")
    assert [" ".join(line.split()) for line in told[at + 1 : at + 4]] == [
        "removed nodes 40 of 24 EXCEEDED 6 scaled down, 34 drifted while empty",
        "removed percent 34 of 20 EXCEEDED of a100",
        "disrupted GPUs 640 of 64 EXCEEDED 224 evicted, 416 evicted later (blocked now)",
    ]
    assert (
        told[at + 4]
        == "Remedies: make one change at a time: the guard allows hand of a100 if it is the only change; or"
    )
    assert told[at + 5].strip() == (
        f"reconciler approve {REVISION} --guard fleet --removed-nodes 40 --removed-percent 34 --disrupted-gpus 640 "
        "--expires 24h"
    )


SURPLUS: dict[str, Any] = {"pools": {"a100": {"nodes": 4}}, "does": ["scale-down a100 0-3"]}


def test_a_plan_that_is_held_as_a_whole_says_both_ways_on() -> None:
    case = SURPLUS | {"guards": {"fleet": {"perPlan": {"maxRemovedPercent": 20}}}}
    told = text(case)
    way = "with perHour: {maxRemovedPercent: 20} instead of perPlan, the change proceeds in steps, as each hour allows"
    at = told.index(f"Remedies: {way}; or")
    assert told[at + 1].strip().startswith("reconciler approve")
    (guard,) = json.loads(report.write(document(case), "json", color=False))["guards"]
    assert guard["by_the_hour"] == ["maxRemovedPercent: 20"]


def test_each_decision_that_a_guard_holds_has_both_ways_on_as_its_remedy() -> None:
    setting = msgspec.structs.replace(ALONE, revision=REVISION)
    for period, way in (
        ("perPlan", "with perHour: {maxRemovedPercent: 20} instead of perPlan, the change proceeds in steps"),
        ("perHour", "the limit has room again at "),
    ):
        made = scene(SURPLUS | {"guards": {"fleet": {period: {"maxRemovedPercent": 20}}}})
        told = with_ways_on(setting, made.plan.guarded, describe_decisions(made.inputs, made.plan.decisions))
        held = [each for each in told if each.held]
        assert held
        for each in held:
            assert each.remedy.startswith(way), each.remedy
            assert f"or approve the change: reconciler approve {REVISION} --guard fleet" in each.remedy
        assert not any(each.remedy for each in told if not each.held)


def surplus(period: str) -> PlanningResult:
    """Four empty nodes that scaling takes away, with a limit of 20 percent."""
    spec = convert({"poolNames": ["*"], period: {"maxRemovedPercent": 20}}, ChangeGuard)
    guard = Declared("ChangeGuard", "fleet", spec, (("", POLICY),))
    world = scaling_stage.World({"nodes": 4})
    desired = msgspec.structs.replace(world.inputs.desired, guards=(guard,))
    world.inputs = msgspec.structs.replace(world.inputs, desired=desired)
    return PlanningResult(world.inputs, Fleet(world.inputs.observed), world.planned())


def test_what_a_guard_holds_has_no_time_at_which_it_goes() -> None:
    for period in ("perPlan", "perHour"):
        made = surplus(period)
        held = [each for each in made.plan.decisions if isinstance(each.act, Hold)]
        assert held
        assert not any("deleted at" in sentence(each.reason) for each in held)


def test_what_a_guard_holds_and_what_goes_are_told_apart() -> None:
    made = surplus("perHour")
    status = report.write(overview_document(overview_of(ALONE, made)), "text", color=False)
    assert "a100: 3 nodes to be scaled down: a100-001, a100-002, a100-003 (once ChangeGuard/fleet allows it)" in status
    assert re.search(r"a100: 1 node being scaled down, .*: a100-000\n", status)
    assert about(made, parse_subject("pool/a100")).outcome == (
        "Of its 4 nodes, 1 is removed as surplus. "
        "Once ChangeGuard/fleet allows the change: of its 4 nodes, 3 are removed as surplus."
    )
    rows = about(made, parse_subject("provisioner/a100")).rows
    assert ("planned", "mark 1 more node, such as a100-000") in rows
    assert ("held", "marking 3 more nodes: held by ChangeGuard/fleet") in rows


def test_nodes_whose_drain_a_guard_holds_are_not_called_empty() -> None:
    case = {
        "nodes": {"a": {"pods": ["web 3"], "candidate": 900}, "c": {"pods": ["big 5"]}},
        "guard": {"poolNames": ["*"], "perPlan": {"maxDisruptedGPUs": 2}},
    }
    world = drain_stage.World(case)
    made = PlanningResult(world.inputs, Fleet(world.inputs.observed), world.planned())
    told = report.write(plan_document(planned_of(ALONE, made, None)), "text", color=False)
    assert "! 1 unneeded Node of a100" in told
    assert "to be drained when ChangeGuard/fleet allows it" in told


def test_what_waits_for_room_says_until_when() -> None:
    case = {
        "pools": {"a100": {"nodes": 30}},
        "guards": {"fleet": {"perHour": {"maxRemovedNodes": 10}}},
        "before": [{"pool": "a100", "nodes": "0-9", "minutes": 30}],
        "does": ["scale-down a100 20-21"],
    }
    told = text(case)
    assert told[0] == "BLOCKED by guard fleet until 08:03Z: 12 nodes removed in the last hour, 10 allowed"
    assert "Remedies: the limit has room again at 08:03Z; or" in told


def test_what_was_approved_says_by_what_and_does_not_block() -> None:
    case = OVER | {
        "approvals": {
            "granted": {"ceilings": {"maxRemovedNodes": 40, "maxRemovedPercent": 34, "maxDisruptedGPUs": 640}}
        }
    }
    told = text(case)
    assert not told[0].startswith("BLOCKED")
    assert "  Approved by ChangeApproval/granted." in told
    assert not any("EXCEEDED" in line or "reconciler approve" in line for line in told)


def test_pools_that_only_observe_are_told_what_would_be_held() -> None:
    case = OVER | {"pools": {"a100": {"nodes": 120, "busy": 80, "mode": "Observe"}}}
    told = text(case)
    assert not told[0].startswith("BLOCKED")
    assert "Guard fleet (suppressed: pools in Observe mode), policies/a100.yaml:4" in told


@pytest.mark.parametrize(
    ("case", "code"),
    [(OVER, ExitCode.BLOCKED), (OVER | {"guards": {}}, ExitCode.CHANGES_EXIST), ({"pools": {}}, ExitCode.FINE)],
)
def test_a_guard_in_the_way_comes_before_changes_in_the_exit_code(case: dict[str, Any], code: ExitCode) -> None:
    ending = PlanOutput(None, Duration(1), detailed_exitcode=True)
    assert ending.code(planned_of(ALONE, scene(case), None)) is code


def test_programs_read_the_same_and_pull_requests_show_it_beside_the_limit() -> None:
    told = document(OVER)
    payload = json.loads(report.write(told, "json", color=False))
    Draft7Validator(plan_schema()).validate(payload)
    (guard,) = payload["guards"]
    assert guard["blocks"]
    assert guard["held"] == 7
    assert {each["measure"]: each["counted"] for each in guard["limits"]} == {
        "removed_nodes": 40,
        "removed_percent": 34,
        "disrupted_gpus": 640,
    }
    (error,) = (each for each in told.annotations if each.severity == "error")
    assert (error.file, error.line, error.code) == ("policies/prod.yaml", 17, "ChangeGuard/fleet")
    assert f"reconciler approve {REVISION}" in error.remedy
