"""What a person reads of guards: that a plan is blocked, before all else; what was counted; and the ways on."""

import json
from typing import Any

import msgspec
import pytest
from jsonschema import Draft7Validator

from reconciler import report
from reconciler.cli.ending import Ending
from reconciler.cli.exit_codes import ExitCode
from reconciler.model.quantity import Duration
from reconciler.plan.kept.scene import Scene
from reconciler.report.document import Document
from reconciler.report.plans.plan_document import plan_document
from reconciler.report.plans.plan_schema import plan_schema
from reconciler.report.plans.planned_of import planned_of
from tests.unit.guards_stage import REVISION, World
from tests.unit.plan_samples import ALONE

OVER: dict[str, Any] = {
    "pools": {"a100": {"nodes": 120, "busy": 80}},
    "guards": {"fleet": {"perPlan": {"maxRemovedNodes": 24, "maxDisruptedGPUs": 64, "maxRemovedPercent": 20}}},
    "does": ["scale-down a100 80-85", "edit a100 removed 86-119; replaced 0-27; blocked 28-79"],
}


def scene(case: dict[str, Any]) -> Scene:
    world = World(case)
    return Scene(world.inputs, world.fleet, world.planned())


def document(case: dict[str, Any]) -> Document:
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
        "disrupted GPUs 640 of 64 EXCEEDED 224 evicted, 416 once what holds them up gives way",
    ]
    assert told[at + 4] == "Ways on: hand of a100 alone passes; or"
    assert told[at + 5].strip() == (
        f"reconciler approve {REVISION} --guard fleet --removed-nodes 40 --removed-percent 34 --disrupted-gpus 640 "
        "--expires 24h"
    )


def test_what_waits_for_room_says_until_when() -> None:
    case = {
        "pools": {"a100": {"nodes": 30}},
        "guards": {"fleet": {"perHour": {"maxRemovedNodes": 10}}},
        "before": [{"pool": "a100", "nodes": "0-9", "minutes": 30}],
        "does": ["scale-down a100 20-21"],
    }
    told = text(case)
    assert told[0] == "BLOCKED by guard fleet until there is room at 08:03Z: 12 nodes removed in the hour, 10 allowed"
    assert "Ways on: there is room at 08:03Z; or" in told


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
    assert "Guard fleet (would: of pools that are only observed), policies/a100.yaml:4" in told


@pytest.mark.parametrize(
    ("case", "code"),
    [(OVER, ExitCode.BLOCKED), (OVER | {"guards": {}}, ExitCode.CHANGES_EXIST), ({"pools": {}}, ExitCode.FINE)],
)
def test_a_guard_in_the_way_comes_before_changes_in_the_exit_code(case: dict[str, Any], code: ExitCode) -> None:
    ending = Ending(None, Duration(1), detailed_exitcode=True)
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
