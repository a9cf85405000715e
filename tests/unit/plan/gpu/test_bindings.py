"""What the planner binds by itself: the table of cases, and what always holds."""

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as some

from reconciler.model import names
from reconciler.model.plan.decision import Bind
from tests.folders import CASES as FOLDER
from tests.unit.plan.decision_lines import lines_of
from tests.unit.plan.gpu.stage import World

CASES: dict[str, dict[str, Any]] = yaml.safe_load((FOLDER / "gpu" / "bindings.yaml").read_text())


def world(case: dict[str, Any]) -> World:
    pods = case["pods"]
    by_name = pods if isinstance(pods, dict) else {each["name"]: each for each in pods}
    by_name = {name: {"scheduler": names.GPU_SCHEDULER, **words} for name, words in by_name.items()}
    nodes = case.get("nodes", {"a": {}})
    return World({"scheduler": "builtin", **case, "pods": by_name, "nodes": nodes, "only": True})


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    case = CASES[name]
    found = world(case)
    decisions = found.verdict().decisions
    assert lines_of(decisions) == case["does"]
    assert lines_of(found.verdict().decisions) == case["does"], "the same inputs give the same plan"


@some.composite
def cases(draw: some.DrawFn) -> dict[str, Any]:
    policies = some.sampled_from(["any", "contiguous", "requireContiguous"])
    counts = {name: draw(some.sampled_from([1, 2, 3, 4, 8])) for name in ("x", "y", "z")}
    order = draw(some.permutations(range(8)))
    pods = {}
    for number in order:
        claim = draw(some.sampled_from(sorted(counts)))
        pods[f"p{number}"] = {"claim": claim, "gpus": counts[claim], "priority": draw(some.integers(0, 2))}
    boards = some.sampled_from([[8], [4, 4], [2, 2, 2, 2], [1, 3, 4], []])
    nodes = {
        name: {"islands": draw(boards), "unhealthy": draw(some.lists(some.integers(0, 7), max_size=2))}
        for name in draw(some.permutations(["a", "b", "c"]))
    }
    lent = draw(some.sets(some.tuples(some.sampled_from("abc"), some.integers(0, 7)), max_size=6))
    return {
        "claims": {name: {"count": count, "policy": draw(policies)} for name, count in counts.items()},
        "pods": pods,
        "nodes": nodes,
        "leases": {f"{node}/{at}": {"pod": draw(some.sampled_from(["p0", "p1", "gone"]))} for node, at in sorted(lent)},
    }


@given(cases())
@settings(max_examples=60)
def test_no_plan_lends_a_gpu_twice_or_one_that_another_holds(case: dict[str, Any]) -> None:
    found = world(case)
    holders = {each.metadata.name: each.spec.holder_identity for each in found.inputs.observed.leases}
    lent: set[str] = set()
    for decision in found.verdict().decisions:
        if not isinstance(decision.act, Bind):
            continue
        claim = case["claims"][case["pods"][decision.subject.name]["claim"]]
        taken = {each.name for each in decision.act.leases}
        assert len(taken) == claim["count"]
        assert not taken & lent
        assert all(holders.get(name, decision.subject.uid) == decision.subject.uid for name in taken)
        lent |= taken
        devices = {each.device for each in decision.act.leases}
        node = case["nodes"][decision.act.node]
        if node["islands"]:
            assert not devices & set(node["unhealthy"])
