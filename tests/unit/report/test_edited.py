"""What an edit of an object in the cluster is told as: the fields that differ, and no more."""

from typing import Any

import msgspec
import pytest

from reconciler.loop.cycle import decide
from reconciler.model.desired import Declared
from reconciler.model.plan.decision import Hold
from reconciler.model.policy.guards import Ceiling, ChangeGuard
from reconciler.model.problem import Origin
from reconciler.report.decision_text import edited
from tests.unit.plan.manifests.stage import inputs_of


@pytest.mark.parametrize(
    ("live", "wish", "told"),
    [
        ({"cpu": "8", "memory": "1Ti"}, {"cpu": "9", "memory": "1Ti"}, ["spec.limits.cpu: 8 -> 9"]),
        (
            {"cpu": "8", "nvidia.com/gpu": "8"},
            {"cpu": "8", "nvidia.com/gpu": "16"},
            ["spec.limits[nvidia.com/gpu]: 8 -> 16"],
        ),
        ({"cpu": "8"}, {"cpu": "8", "nodes": "3"}, ["spec.limits.nodes: + 3"]),
        ({"cpu": "8", "nodes": "3"}, {"cpu": "8"}, ["spec.limits.nodes: - 3"]),
    ],
)
def test_of_a_map_only_the_keys_that_differ_are_told(live: Any, wish: Any, told: list[str]) -> None:
    inputs = inputs_of({"unmanaged": True, "live": {"spec": {"limits": live}}, "wish": {"spec": {"limits": wish}}})
    (decision,) = decide(inputs).plan.decisions
    assert [each.words for each in edited(decision, inputs)] == told


@pytest.mark.parametrize(
    ("case", "code"),
    [
        ({"theirs": True}, "NotOurs"),
        ({"unread": {"nodeclaims.karpenter.sh": "timed out"}}, "ImpactUnread"),
    ],
)
def test_what_a_hold_keeps_from_being_edited_is_told_field_by_field(case: dict[str, Any], code: str) -> None:
    expires = {"spec": {"template": {"spec": {"expireAfter": "720h"}}}}
    inputs = inputs_of({"nodes": 1, "wish": expires, **case})
    decision = next(each for each in decide(inputs).plan.decisions if each.subject.kind == "NodePool")
    assert (decision.reason.code, isinstance(decision.act, Hold)) == (code, True)
    assert "spec.template.spec.expireAfter: Never -> 720h" in [each.words for each in edited(decision, inputs)]


def test_a_field_of_another_manager_is_told_with_both_values() -> None:
    limits = {"spec": {"limits": {"cpu": "480"}}}
    set_by_hand = {"managers": {"kubectl-edit": limits}, "live": limits, "applied": {"spec": {"limits": None}}}
    inputs = inputs_of(set_by_hand)
    (decision,) = decide(inputs).plan.decisions
    assert decision.reason.code == "FieldConflict"
    assert [each.words for each in edited(decision, inputs)] == ["spec.limits.cpu: 480 -> 960"]


def test_what_a_guard_holds_is_told_field_by_field() -> None:
    inputs = inputs_of({"nodes": 3, "wish": {"spec": {"template": {"spec": {"expireAfter": "720h"}}}}})
    limits = ChangeGuard(pool_names=["*"], per_plan=Ceiling(max_removed_nodes=0))
    guard = Declared("ChangeGuard", "fleet", limits, (("", Origin("p.yaml", 1)),))
    inputs = msgspec.structs.replace(inputs, desired=msgspec.structs.replace(inputs.desired, guards=(guard,)))
    (decision,) = [each for each in decide(inputs).plan.decisions if each.subject.kind == "NodePool"]
    assert decision.reason.code == "OverPlanLimit"
    assert [each.words for each in edited(decision, inputs)] == ["spec.template.spec.expireAfter: Never -> 720h"]


def test_what_does_not_exist_yet_is_no_edit() -> None:
    inputs = inputs_of({"live": "absent", "not_served": ["nodepools.karpenter.sh"]})
    for decision in decide(inputs).plan.decisions:
        assert not edited(decision, inputs)
