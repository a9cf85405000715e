"""What is done for a provisioner: the tables of cases, and what always holds."""

import re
from collections import Counter
from typing import Any

import pytest

from reconciler.fleet.fleet import Fleet
from reconciler.model.plan.evaluation import ScalingReport
from reconciler.plan.capacity.wanted_nodes import WantedNode
from reconciler.plan.draft import Draft
from reconciler.plan.reasons import code_of
from reconciler.plan.scaling.feature import FEATURE
from reconciler.plan.scaling.planner import scaling
from reconciler.plan.scaling.reasons import NoMoreNodes
from reconciler.report.sentences import sentence
from tests.unit.plan.decision_lines import lines_of
from tests.unit.plan.scaling.stage import World, table

FILES = ("steps.yaml", "demand.yaml", "cluster_min.yaml", "by_time.yaml")
CASES = {name: case for file in FILES for name, case in table(file).items()}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    case: dict[str, Any] = CASES[name]
    world = World(case)
    made = world.planned()
    assert lines_of(made.decisions) == case["does"]
    (size,) = [each for each in made.report(ScalingReport).sizes if each.provisioner == "a100"]
    assert f"{size.size} -> {size.target}" == case["size"], sentence(size.reason)
    assert lacking(world) == case.get("lacks", [])
    assert [each.reason.code for each in size.limits if each.kind == "ScaleUpLimited"] == list(
        filter(None, [case.get("limit")])
    )


def lacking(world: World) -> list[str]:
    """2 for minSize; of another pool than a100, that first."""
    draft = Draft(Fleet(world.inputs.observed), world.inputs.desired)
    scaling(world.inputs, draft)
    lacks = Counter(((each.pool, each.provisioner), each.why) for each in draft.capacity.wanted if _is_missing(each))
    pods = Counter[str]()
    for each in draft.capacity.requests:
        pods[each.pool] += len(each.pods)
    return [
        ("" if pool == "a100" else f"{pool} ") + f"{nodes} for {why}" + (f" of {pods[pool]}" if why == "demand" else "")
        for ((pool, _), why), nodes in lacks.items()
    ]


def _is_missing(node: WantedNode) -> bool:
    return node.requestable == "now" or (node.requestable == "next_attempt" and node.why != "demand")


def test_a_pod_behind_our_gate_is_let_go_to_a_place_that_is_kept_once_there_is_room_beside_the_one_before_it() -> None:
    case = CASES["behind our gate it is not let go before there is room beside the one before it"]
    gone = [{**each, "gone": True} for each in case["evicted"]]
    assert places(case) == {}
    assert places({**case, "evicted": gone}) == {"uid-wait-0-0": "a100-002"}


def places(case: dict[str, Any]) -> dict[str, str]:
    world = World(case)
    draft = Draft(Fleet(world.inputs.observed), world.inputs.desired)
    scaling(world.inputs, draft)
    return {uid: each.node for uid, each in draft.capacity.places.items()}


def test_a_limit_is_named_also_where_another_pool_serves_the_pods() -> None:
    limits = [
        each
        for case in CASES.values()
        for size in World(case).planned().report(ScalingReport).sizes
        for each in size.limits
    ]
    told = [sentence(each.reason) for each in limits if isinstance(each.reason.facts, NoMoreNodes)]
    assert any("b100 has no node for " in each for each in told)
    assert all(re.search(r" and (maxSize|limits\.\S+) \S+ of \S+ allows no more nodes", each) for each in told)


def test_each_reason_is_shown_by_a_case() -> None:
    shown = set()
    for case in CASES.values():
        made = World(case).planned()
        shown |= {each.reason.code for each in made.decisions}
        shown |= {
            reason.code
            for size in made.report(ScalingReport).sizes
            for reason in (size.reason, *[each.reason for each in size.limits])
        }
    assert {code_of(each) for each in FEATURE.reasons} <= shown
