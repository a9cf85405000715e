"""Whatever the cluster and the policies are: `plan`, `explain` and `status` have an answer, and the answers agree."""

import json
from collections import Counter

import msgspec
import pytest
from jsonschema import Draft7Validator

from reconciler import report
from reconciler.fleet.fleet import Fleet
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.impact.impact import with_impact
from reconciler.plan.planner import plan
from reconciler.report.explain.subject import answer, parse_subject
from reconciler.report.plans.build import Compared, planned_of
from reconciler.report.plans.plan_document import plan_document
from reconciler.report.plans.plan_shape import plan_schema
from reconciler.report.plans.planned import Planned
from reconciler.report.status.overview import overview_document, overview_of
from tests.unit.plan.drawn_fleets import Drawn
from tests.unit.report.plans.samples import ALONE

VALIDATOR = Draft7Validator(plan_schema())
SEEDS = range(24)
GONE = {"scaled", "drained", "removed", "deleted"}


def scene_of(inputs: Inputs) -> PlanningResult:
    fleet = Fleet(inputs.observed)
    return PlanningResult(inputs, fleet, plan(inputs, fleet))


def without_drains(inputs: Inputs) -> Inputs:
    return msgspec.structs.replace(inputs, desired=msgspec.structs.replace(inputs.desired, drains=()))


@pytest.mark.parametrize("seed", SEEDS)
def test_each_node_has_one_fate_and_its_money_is_in_the_cost(seed: int) -> None:
    scene = scene_of(Drawn(seed).inputs())
    base = scene_of(without_drains(scene.inputs))
    setting = msgspec.structs.replace(ALONE, now=scene.inputs.now)
    for compared in (None, Compared(base, ())):
        planned = planned_of(setting, scene, compared)
        nodes = Counter((each.node_pool, node) for each in planned.plan.consequences for node in each.nodes)
        assert not [node for node, count in nodes.items() if count > 1]
        assert all(each.pods == sum(share.pods for share in each.shares) for each in planned.plan.consequences)
        document = plan_document(planned)
        assert report.write(document, "text", color=False)
        VALIDATOR.validate(json.loads(report.write(document, "json", color=False)))
        impact = document.payload["impact"]
        gone = {node for each in planned.plan.consequences if each.fate in GONE for node in each.nodes}
        if compared is None:
            _check_money(planned)
        there = {node.name for pool in planned.pools for node in scene.fleet.nodes_of(pool.pool)}
        assert impact["nodes"]["now"] - impact["nodes"]["after"] <= len(gone & there)


def _check_money(planned: Planned) -> None:
    """What scaling and drains save is what the bill of their pool is lower by."""
    for pool in planned.pools:
        own = [each for each in planned.plan.consequences if each.pool == pool.pool]
        if own and {each.fate for each in own} <= {"scaled", "drained"}:
            saved = sum(each.micro_dollars_per_hour for each in own)
            assert saved == pool.cost.with_change - pool.cost.now


@pytest.mark.parametrize("seed", SEEDS)
def test_each_decision_is_explained_and_status_agrees(seed: int) -> None:
    scene = scene_of(Drawn(seed).inputs())
    departed = with_impact(scene).scene
    for decision in scene.plan.decisions:
        assert decision in answer(departed, parse_subject(decision.subject.title)).decisions
    setting = msgspec.structs.replace(ALONE, now=scene.inputs.now)
    overview = overview_of(setting, scene)
    assert report.write(overview_document(overview), "text", color=False)
    leaving = Counter(node for each in overview.leaving for node in each.nodes if not each.how.endswith("arriving"))
    assert not [node for node, count in leaving.items() if count > 1]
