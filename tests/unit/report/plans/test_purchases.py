"""Purchases are consequences like any other: nodes, GPUs and money, now or later, with a base and without one."""

import json
from typing import Any

import msgspec
import pytest
from jsonschema import Draft7Validator

from reconciler import report
from reconciler.fleet.fleet import Fleet
from reconciler.model.bundle import FieldChange, PolicyChange
from reconciler.model.plan.evaluation import ScalingReport
from reconciler.model.problem import Origin
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.impact.impact import with_impact
from reconciler.plan.planner import plan
from reconciler.plan.scaling.planner import scaling
from reconciler.plan.smart_pods.planner import smart_pods
from reconciler.report.document import ReportDocument
from reconciler.report.explain.subject import about, parse_subject
from reconciler.report.plans.build import Compared, planned_of
from reconciler.report.plans.plan_document import plan_document
from reconciler.report.plans.plan_shape import plan_schema
from reconciler.report.status.overview import overview_of
from tests.unit.plan.impact.stage import COMES, planned, rows, scene_of, table
from tests.unit.plan.scaling.stage import NOW
from tests.unit.report.plans.samples import ALONE, SETTING

Json = dict[str, Any]
CASES = table("purchases.yaml")
VALIDATOR = Draft7Validator(plan_schema())
DOLLAR = 1_000_000


@pytest.mark.parametrize("name", CASES)
def test_what_comes_is_told(name: str) -> None:
    assert list(rows(planned(CASES[name]))) == CASES[name]["comes"]


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "impact" in case])
def test_what_comes_is_in_the_impact(name: str) -> None:
    impact = plan_document(planned(CASES[name])).payload["impact"]
    expected = CASES[name]["impact"]
    assert [impact["nodes"][when] for when in ("now", "before", "after")] == expected["nodes"]
    money = [impact["micro_dollars_per_hour"][when] for when in ("now", "before", "after")]
    assert money == [amount * DOLLAR for amount in expected["money"]]
    assert (impact["nodes_bought"], impact["gpus_bought"]) == (expected["bought"], 8 * expected["bought"])


@pytest.mark.parametrize("name", CASES)
def test_money_adds_up_and_every_format_has_it(name: str) -> None:
    document = plan_document(planned(CASES[name]))
    for name_of_format in ("text", "markdown", "html", "junit", "sarif"):
        assert report.write(document, name_of_format, color=False)
    told = json.loads(report.write(document, "json", color=False))
    VALIDATOR.validate(told)
    sums = dict.fromkeys(("standing", "change", "spared"), 0)
    for each in told["consequences"]:
        sums[each["cause"]] += each["micro_dollars_per_hour"] if each["fate"] != "scheduled" else 0
    money = told["impact"]["micro_dollars_per_hour"]
    assert money["after"] - money["before"] == sums["change"] - sums["spared"]


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "would" in case])
def test_where_nothing_is_done_now_the_purchase_is_told_as_what_would_be(name: str) -> None:
    told = report.write(plan_document(planned(CASES[name])), "text", color=False)
    assert f"because of this plan (suppressed: {CASES[name]['would']})" in told


def edited(case: Json, kind: str, path: str, before: str, after: str) -> ReportDocument:
    """With one edit of a field that leads to it."""
    origin = Origin("p.yaml", 5)
    change = PolicyChange(kind, "a100", "change", origin, (FieldChange(path, before, after, origin),))
    compared = Compared(scene_of({**case, **case["base"]}), (change,))
    setting = msgspec.structs.replace(SETTING, now=NOW, seen_at=NOW)
    return plan_document(planned_of(setting, scene_of(case), compared))


def test_the_line_of_the_policy_says_how_many_nodes_an_edit_buys() -> None:
    case = CASES["a pull request that raises minSize buys only what its base does not"]
    told = edited(case, "NodeProvisioner", "minSize", "3", "5")
    words = "minSize: 3 -> 5  in place; target size 3 -> 5; buys 2 nodes"
    assert words in report.write(told, "text", color=False)
    (beside,) = told.annotations
    assert (beside.file, beside.line) == ("p.yaml", 5)
    assert beside.sentence == "minSize: 3 -> 5: in place; target size 3 -> 5; buys 2 nodes; 2 nodes bought, +40.00 $/h"


def test_it_says_how_many_fewer_as_well() -> None:
    case = CASES["a pull request that lowers minSize spares what is not bought any more"]
    told = report.write(edited(case, "NodeProvisioner", "minSize", "5", "2"), "text", color=False)
    assert "in place; target size 5 -> 2; buys 3 fewer nodes" in told


def test_an_edit_of_instance_types_says_what_is_bought_instead() -> None:
    case = CASES["another instance type in the first place buys that one instead"]
    told = report.write(edited(case, "GpuPool", "instanceTypes", "[a]", "[b, a]"), "text", color=False)
    assert "instanceTypes: [a] -> [b, a]  in place; buys 1 node in place of 1\n" in told


def test_an_edit_of_prices_says_nothing_of_what_others_buy() -> None:
    case = CASES["another instance type in the first place buys that one instead"]
    told = report.write(edited(case, "GpuPool", "instanceTypes[a].pricePerHour", "1", "2"), "text", color=False)
    assert "instanceTypes[a].pricePerHour: 1 -> 2  in place\n" in told


def test_schedules_say_how_many_nodes_they_buy() -> None:
    case = CASES["a pull request that adds schedules causes what they buy"]
    told = report.write(edited(case, "NodeProvisioner", "schedules", "", "x"), "text", color=False)
    assert "in place; target size stays 2; buys 3 nodes by schedules\n" in told


def test_without_a_base_what_is_bought_stands_beside_the_provisioner() -> None:
    document = plan_document(planned(CASES["minSize is bought at once"]))
    told = report.write(document, "github", color=False)
    line = "::warning file=policies/a100.yaml,line=23,title=NodeProvisioner/a100::2 nodes bought, +40.00 $/h\n"
    assert line in told


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "base" not in case])
def test_explain_and_status_tell_of_the_same_nodes(name: str) -> None:
    scene = scene_of(CASES[name])
    told = with_impact(scene).scene
    bought = sum(len(each.nodes) for each in told.plan.consequences if each.fate == "bought")
    outcome = about(scene, parse_subject("pool/a100")).outcome
    assert (f"{bought} node{' is' if bought == 1 else 's are'} bought" in outcome) is (bought > 0)
    rows_told = about(scene, parse_subject("provisioner/a100")).rows
    coming = [
        each for each in told.plan.consequences if each.fate in COMES and each.order and each.order.stage != "machine"
    ]
    if told.plan.report(ScalingReport).sizes:
        assert sum(label in {"buys", "held back"} for label, _ in rows_told) == len(coming)
    setting = msgspec.structs.replace(ALONE, now=NOW, seen_at=NOW)
    leaving = overview_of(setting, scene).leaving
    status = sum(len(each.nodes) for each in leaving if not each.has_names)
    assert status == sum(
        len(each.nodes) for each in coming if each.fate == "bought" and each.order and each.order.stage != "refill"
    )


def test_explain_says_would_where_nothing_is_done() -> None:
    told = about(scene_of(CASES["so would one that is suspended"]), parse_subject("pool/a100"))
    assert told.outcome == "Would apply if GpuPool/a100 were not suspended: 1 node is bought: p4d.24xlarge (on-demand)."


def test_explain_says_what_it_costs_and_when() -> None:
    told = about(
        scene_of(CASES["between two attempts it is told when the next one is"]), parse_subject("provisioner/a100")
    )
    assert dict(told.rows)["buys"] == (
        "1 node, 8 GPUs: bought for 1 pod, p4d.24xlarge (spot); at the next attempt, 08:00Z; +$5.00/h"
    )


def test_machines_that_run_already_cost_nothing_more() -> None:
    """A NodeClaim that is launched is paid for, though its node is not there."""
    scene = scene_of(CASES["a machine on its way is not bought again, and costs its price while it is not launched"])
    seen = scene.inputs.observed
    launched = [
        msgspec.structs.replace(each, status=msgspec.structs.replace(each.status, provider_id="kwok://x"))
        for each in seen.node_claims
    ]
    observed = msgspec.structs.replace(seen, node_claims=tuple(launched))
    inputs = msgspec.structs.replace(scene.inputs, observed=observed)
    fleet = Fleet(observed)
    told = planned_of(ALONE, PlanningResult(inputs, fleet, plan(inputs, fleet, (scaling, smart_pods))), None)
    (row,) = rows(told)
    assert row == "standing 1 bought machine p4d.24xlarge on-demand 8 GPUs 0"
    impact = plan_document(told).payload["impact"]
    assert impact["nodes"] == {"now": 1, "before": 2, "after": 2}
    assert impact["micro_dollars_per_hour"] == {"now": 40_000_000, "before": 40_000_000, "after": 40_000_000}
