"""Drains are consequences like any other: nodes, GPUs, evictions and money, in every format and beside the guards."""

import json
from collections import Counter
from typing import Any

import msgspec
import pytest
from jsonschema import Draft7Validator

from reconciler import report
from reconciler.fleet.fleet import Fleet
from reconciler.model.bundle import FieldChange, PolicyChange
from reconciler.model.plan.decision import Evict
from reconciler.model.problem import Origin
from reconciler.plan.drain.codes.emptying import Drained, PodLeaves
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.impact.impact import with_impact
from reconciler.report.document import ReportDocument
from reconciler.report.plans.build import Compared, planned_of
from reconciler.report.plans.plan_document import plan_document
from reconciler.report.plans.plan_shape import plan_schema
from tests.unit.plan.drain.stage import World, tables
from tests.unit.plan.scaling.stage import NOW
from tests.unit.report.plans.samples import ALONE

Json = dict[str, Any]

CASES = tables()
SETTING = msgspec.structs.replace(ALONE, now=NOW, seen_at=NOW)
ADDED = PolicyChange(
    "DrainPolicy", "drains", "add", Origin("p.yaml", 5), (FieldChange("poolNames", None, "a100", Origin("p.yaml", 6)),)
)
# Two nodes whose pods fit on the third.
LITTLE_USED: Json = {"nodes": {"a": {"pods": ["web 1"]}, "b": {"pods": ["web 2"]}, "c": {"pods": ["big 5"]}}}
VALIDATOR = Draft7Validator(plan_schema())


def scene(case: Json) -> PlanningResult:
    world = World(case)
    fleet = Fleet(world.inputs.observed)
    return PlanningResult(world.inputs, fleet, world.planned())


def document(case: Json, base: Json | None = None) -> ReportDocument:
    compared = Compared(scene(base), (ADDED,)) if base is not None else None
    return plan_document(planned_of(SETTING, scene(case), compared))


def text(case: Json, base: Json | None = None) -> str:
    return report.write(document(case, base), "text", color=False)


def limits(case: Json) -> dict[str, Json]:
    """Of the only guard, by measure, in one plan."""
    (guard,) = document(case).payload["guards"]
    return {each["measure"]: each for each in guard["limits"] if each["period"] == "plan"}


def test_a_pull_request_that_adds_a_drain_policy_shows_what_will_be_drained_when_and_what_it_saves() -> None:
    told = document(LITTLE_USED, LITTLE_USED | {"policy": "none"})
    impact = told.payload["impact"]
    assert (impact["pods_evicted"], impact["gpus_disrupted"]) == (2, 3)
    assert impact["nodes"] == {"now": 3, "before": 3, "after": 1}
    assert impact["gpus"] == {"now": 24, "before": 24, "after": 8}
    assert impact["micro_dollars_per_hour"] == {"now": 65_880_000, "before": 65_880_000, "after": 21_960_000}
    (drained,) = told.payload["consequences"]
    assert (drained["fate"], drained["cause"], drained["nodes"]) == ("drained", "change", ["a", "b"])
    assert (drained["pods"], drained["begins_at"], drained["wave"]) == (2, "2026-11-02T08:10:00Z", 4)
    assert drained["micro_dollars_per_hour"] == -43_920_000


@pytest.mark.parametrize("format_name", ["text", "markdown", "github", "html"])
def test_every_format_for_people_shows_them(format_name: str) -> None:
    told = report.write(document(LITTLE_USED, LITTLE_USED | {"policy": "none"}), format_name, color=False)
    words = (
        ("2 of 3 nodes", "2 nodes drained") if format_name == "github" else ("not needed, drained", "-43.92", "08:10Z")
    )
    assert all(each in told for each in words), told


def test_the_line_of_the_policy_says_how_many_nodes_an_edit_drains() -> None:
    told = document(LITTLE_USED, LITTLE_USED | {"policy": "none"})
    (beside,) = told.annotations
    assert (beside.file, beside.line) == ("p.yaml", 5)
    assert beside.sentence == (
        "DrainPolicy/drains: drains 2 of 3 nodes; 2 nodes drained, 2 pods must move, 3 GPUs in use, -43.92 $/h"
    )


def test_what_is_drained_without_the_change_as_well_is_no_doing_of_the_change() -> None:
    told = document(LITTLE_USED, LITTLE_USED)
    assert told.payload["impact"]["pods_evicted"] == 0
    assert [each["cause"] for each in told.payload["consequences"]] == ["standing"]


def test_a_change_that_ends_a_drain_spares_its_nodes() -> None:
    told = text(LITTLE_USED | {"policy": {"utilizationThresholdPercent": 15}}, LITTLE_USED)
    assert "no longer happens with this change" in told
    assert "drains" not in text(LITTLE_USED | {"policy": "none"}).lower()


def test_a_plan_that_evicts_pods_says_how_many_leave_the_nodes_one_after_the_other_or_at_once() -> None:
    case = {"nodes": {"a": {"pods": ["web 1", "job 2"], "draining": 60}, "c": {"pods": ["big 1"]}}}
    made = scene(case).plan
    assert any(isinstance(each.act, Evict) for each in made.decisions)
    impact = document(case).payload["impact"]
    assert (impact["pods_evicted"], impact["gpus_disrupted"]) == (2, 3)
    assert "since 07:59Z" in text(case)


def test_a_candidate_whose_timer_runs_is_told_as_things_stand() -> None:
    nodes = {**LITTLE_USED["nodes"], "a": {"pods": ["web 1"], "candidate": 540}}
    told = text({"nodes": nodes})
    as_things_stand, because = told.split("independent of this plan")[1].split("because of this plan")
    assert "1     8  -21.96  from 08:01Z" in as_things_stand
    assert "1     8  -21.96  from 08:10Z" in because


def test_no_more_nodes_are_told_than_a_provisioner_lets_go() -> None:
    nodes = {f"n{at}": {"pods": ["web 1"]} for at in range(6)} | {"z": {"pods": ["big 2"]}}
    assert document({"nodes": nodes}).payload["impact"]["nodes"]["after"] == 1
    kept = document({"nodes": nodes, "keep": {"minSize": 4, "minGPUUtilizationPercent": 80}})
    assert kept.payload["impact"]["nodes"]["after"] == 4


def test_a_node_that_is_given_back_is_not_told_as_drained() -> None:
    case = {
        "nodes": {"a": {"pods": ["web 1"], "draining": 900}, "c": {"pods": ["big 5"]}},
        "apps": {"web": {"budget": 0}},
    }
    assert not document(case).payload["consequences"]


def test_a_window_decides_when_a_drain_begins() -> None:
    windows = [{"schedule": "0 20 * * *", "duration": "2h"}]
    (drained,) = document(LITTLE_USED | {"policy": {"windows": windows}}).payload["consequences"]
    assert drained["begins_at"] == "2026-11-02T20:00:00Z"


def test_a_guard_is_told_of_what_drains_will_take_and_blocks_none_of_it_before() -> None:
    case = LITTLE_USED | {"guard": {"poolNames": ["*"], "perPlan": {"maxDisruptedGPUs": 2, "maxRemovedPercent": 90}}}
    told = limits(case)
    assert (told["disrupted_gpus"]["counted"], told["disrupted_gpus"]["expected"]) == (0, 3)
    assert told["removed_percent"]["expected"] == 67
    (guard,) = document(case).payload["guards"]
    assert not guard["blocks"]
    assert "3 more to be drained later, in several plans" in text(case)
    # How long that takes is then not known.
    assert [each["seconds"] for each in document(case).payload["consequences"]] == [None]
    assert [each["seconds"] for each in document(LITTLE_USED).payload["consequences"]] == [90]


def test_a_node_that_no_plan_may_drain_is_told_before_its_time_comes() -> None:
    case = LITTLE_USED | {"guard": {"poolNames": ["*"], "perPlan": {"maxDisruptedGPUs": 1}}}
    assert "1 node to be drained exceeds a limit alone: the guard will hold it." in text(case)
    assert document(case).payload["guards"][0]["too_large"] == 1


def test_the_summary_counts_all_candidates_though_one_plan_taints_200() -> None:
    case = CASES["one plan starts the timers of 200 nodes, and names the candidates whose timers start later"]
    told = text(case)
    assert "204 Nodes of a100" in told
    assert "200 in this plan, 4 in later plans" in told
    assert "204 objects to change, 0 to add, 0 to delete" in told
    would = text(case | {"pool": {"mode": "Observe"}})
    assert "0 objects to change" in would
    assert "204 suppressed (would apply if GpuPool/a100 were in mode Enforce)" in would
    assert "not needed, drained    204" in told


@pytest.mark.parametrize("name", sorted(CASES)[::3])
def test_each_node_has_one_fate_and_the_document_keeps_to_the_schema(name: str) -> None:
    made = scene(CASES[name])
    told = with_impact(made).scene
    nodes = Counter(node for each in told.plan.consequences for node in each.nodes)
    assert not [node for node, count in nodes.items() if count > 1]
    begun = {each.subject.name for each in made.plan.decisions if isinstance(each.reason.facts, Drained | PodLeaves)}
    assert begun <= nodes.keys()
    VALIDATOR.validate(json.loads(report.write(document(CASES[name]), "json", color=False)))


def test_a_node_that_waits_for_a_pod_to_complete_goes_at_no_known_time() -> None:
    nodes = {"a": {"pods": ["web 1", "train 1"], "candidate": 600}, "b": {"pods": ["big 5"]}}
    case = {"nodes": nodes, "apps": {"train": {"safe": "on-completion"}}}
    (row,) = [line for line in text(case).splitlines() if "not needed, drained" in line]
    assert "once a guard or window allows it, or pods have completed" in row
    assert "1 pod" in row
