"""Each policy is told how it stands, once, and only when that has changed."""

import json
from typing import Any

import msgspec
import pytest

from reconciler.model.cluster.observed import Observed
from reconciler.model.desired import Desired
from reconciler.model.plan.decision import Apply, Decision, Hold, Label, Ref
from reconciler.model.plan.inputs import Inputs
from reconciler.model.problem import PolicyRef, Problem
from reconciler.plan.status.conditions import POLICIES, StatusContext
from reconciler.policy.rules.kinds import POLICY_KINDS
from reconciler.report.conditions import statuses
from tests.unit.plan.status.stage import (
    BROKEN,
    COMING,
    LATER,
    MADE,
    NOW,
    READY,
    RESOURCES,
    STUCK,
    WAITS,
    after,
    conditions,
    decision,
    inputs,
    plan,
    reason,
    told,
    wish,
)
from tests.unit.policy.custom_resources.stage import POLICIES as TEXT
from tests.unit.policy.custom_resources.stage import by_hand, rendered


def test_what_is_followed_is_ready_at_the_generation_that_was_read() -> None:
    found = told(statuses(inputs(wish()), plan(), RESOURCES))
    assert sorted(found) == ["ChangeGuard/fleet", "GpuPool/a100", "GpuPool/l4", "NodeProvisioner/a100"]
    for status in found.values():
        assert conditions(status) == READY
        assert status["observedGeneration"] == 3
        assert {each["observedGeneration"] for each in status["conditions"]} == {3}
        assert {each["lastTransitionTime"] for each in status["conditions"]} == {"2026-11-02T08:00:00Z"}


def test_the_decision_names_the_object_by_its_uid() -> None:
    subjects = {each.subject.uid for each in statuses(inputs(wish()), plan(), RESOURCES)}
    assert subjects == {each.metadata.uid for each in rendered(wish())}


def test_what_is_told_already_is_not_told_again() -> None:
    objects = rendered(wish())
    first = statuses(inputs(wish(), objects=objects), plan(), RESOURCES)
    assert statuses(inputs(wish(), LATER, after(objects, first)), plan(), RESOURCES) == ()


def test_a_condition_keeps_its_time_until_it_turns() -> None:
    objects = rendered(wish())
    first = after(objects, statuses(inputs(wish(), objects=objects), plan(), RESOURCES))
    again = statuses(inputs(wish(), LATER, first), plan(decision(Apply(manifest="{}"))), RESOURCES)
    (status,) = told(again).values()
    assert {each["type"]: each["lastTransitionTime"] for each in status["conditions"]} == {
        "Ready": "2026-11-02T09:00:00Z",
        "Reconciling": "2026-11-02T09:00:00Z",
        "Stalled": "2026-11-02T08:00:00Z",
        "CapacityShort": "2026-11-02T08:00:00Z",
    }


def test_conditions_of_others_are_left_to_them() -> None:
    objects = rendered(wish())
    first = after(objects, statuses(inputs(wish(), objects=objects), plan(), RESOURCES))
    theirs = {"type": "Synced", "status": "True", "reason": "x", "message": "", "lastTransitionTime": "t"}
    with_theirs = [
        msgspec.structs.replace(
            each,
            rest={**each.rest, "status": {**status, "conditions": [theirs, *status["conditions"]]}},
        )
        for each in first
        for status in [each.rest["status"]]
    ]
    assert statuses(inputs(wish(), LATER, with_theirs), plan(), RESOURCES) == ()


@pytest.mark.parametrize(
    ("decided", "stands", "why"),
    [
        (decision(Apply(manifest="{}")), COMING, "Missing"),
        (decision(Hold(), WAITS), STUCK, WAITS.code),
        (decision(Hold(LATER), WAITS), COMING, WAITS.code),
        # What else is done for a pool, and what of it is not yielded any more, says nothing about it.
        (decision(Hold(), WAITS, subject=Ref("Pod", "x", "y", "u")), READY, "Followed"),
        (decision(Label(labels=(("a", "b"),)), subject=Ref("Node", "", "n", "u")), READY, "Followed"),
        (Decision("scaling", Ref("Node", "", "n"), Hold(), MADE, "a100"), READY, "Followed"),
    ],
)
def test_a_pool_stands_as_what_its_template_yields_does(decided: Decision, stands: dict[str, str], why: str) -> None:
    found = told(statuses(inputs(wish()), plan(decided), RESOURCES))
    assert (conditions(found["GpuPool/a100"]), reason(found["GpuPool/a100"])) == (stands, why)
    assert conditions(found["NodeProvisioner/a100"]) == READY


def test_a_pool_that_only_observes_says_what_would_be_done() -> None:
    observing = wish(TEXT.replace("  mode: Enforce\n", ""))
    found = told(statuses(inputs(observing), plan(decision(Apply(manifest="{}"), would=True)), RESOURCES))
    assert conditions(found["GpuPool/a100"]) == READY
    assert "suppressed actions for its rendered objects: 1" in found["GpuPool/a100"]["conditions"][0]["message"]


def test_what_is_set_aside_is_ready_and_says_so() -> None:
    found = told(statuses(inputs(wish(TEXT.replace("minSize: 1", "minSize: 1, suspend: true"))), plan(), RESOURCES))
    assert (conditions(found["NodeProvisioner/a100"]), reason(found["NodeProvisioner/a100"])) == (READY, "Suspended")


def test_a_problem_of_a_template_is_told_to_the_pool_that_it_showed_for() -> None:
    problem = Problem("node_pool.yaml.j2", 3, 1, "RC406", "fails", subject=PolicyRef("GpuPool", "l4"))
    found = told(statuses(inputs(wish()), plan(), StatusContext((problem,), are_resources=True)))
    assert [name for name, status in found.items() if status["problems"]] == ["GpuPool/l4"]


def test_a_problem_is_of_no_pool_that_only_its_words_name() -> None:
    problem = Problem("node_pool.yaml.j2", 3, 1, "RC406", 'there is no value "(for GpuPool/l4, "')
    found = told(statuses(inputs(wish()), plan(), StatusContext((problem,), are_resources=True)))
    assert not any(status["problems"] for status in found.values())


def test_an_object_that_no_bundle_has_is_told_that_it_does_not_count() -> None:
    fewer = wish(TEXT.split("---\n")[0])
    found = told(statuses(inputs(fewer, objects=by_hand()), plan(), RESOURCES))
    assert (conditions(found["GpuPool/a100"]), reason(found["GpuPool/a100"])) == (READY, "Followed")
    assert (conditions(found["GpuPool/l4"]), reason(found["GpuPool/l4"])) == (STUCK, "NotInBundle")


def test_before_anything_good_was_read_problems_are_told_all_the_same() -> None:
    nothing = Inputs(Desired("", ""), Observed(policies=tuple(rendered(wish()))), NOW)
    found = told(statuses(nothing, None, StatusContext((BROKEN,), are_resources=True)))
    assert reason(found["GpuPool/a100"]) == "Invalid"


def test_a_status_stays_within_what_its_definition_allows() -> None:
    long = tuple(Problem("GpuPool/a100", 0, 0, "RC103", f"{number} " + "x" * 5_000) for number in range(300))
    found = told(statuses(inputs(wish()), plan(), StatusContext(long, are_resources=True)))["GpuPool/a100"]
    assert (len(found["problems"]), max(map(len, found["problems"]))) == (100, 1_024)
    assert max(len(each["message"]) for each in found["conditions"]) <= 32_768


def config_map(decisions: tuple[Decision, ...]) -> dict[str, Any]:
    (found,) = decisions
    assert isinstance(found.act, Apply)
    manifest: dict[str, Any] = json.loads(found.act.manifest)
    return manifest


def test_where_policies_are_not_in_the_cluster_a_config_map_tells_of_all_of_them() -> None:
    elsewhere = Inputs(wish(), Observed(), NOW)
    made = statuses(elsewhere, plan(decision(Apply(manifest="{}"))), StatusContext(namespace="here"))
    manifest = config_map(made)
    assert manifest["metadata"] == {"name": "reconciler-status", "namespace": "here"}
    lines = manifest["data"]
    assert (lines["revision"], lines["environment"]) == ("4c1f9e2", "prod")
    assert conditions(json.loads(lines["GpuPool.a100"])) == COMING
    assert conditions(json.loads(lines["NodeProvisioner.a100"])) == READY
    policies = {"GpuPool.a100", "GpuPool.l4", "NodeProvisioner.a100", "ChangeGuard.fleet"}
    assert set(lines) == {"revision", "environment", *policies}


def test_the_config_map_is_written_only_when_it_says_something_new() -> None:
    first = statuses(Inputs(wish(), Observed(), NOW), plan(), StatusContext())
    assert isinstance(first[0].act, Apply)
    before = StatusContext(before=first[0].act.manifest)
    assert statuses(Inputs(wish(), Observed(), LATER), plan(), before) == ()
    turned = statuses(Inputs(wish(), Observed(), LATER), plan(decision(Hold(), WAITS)), before)
    status = json.loads(config_map(turned)["data"]["GpuPool.a100"])
    times = {each["type"]: each["lastTransitionTime"][11:13] for each in status["conditions"]}
    assert times == {"Ready": "09", "Reconciling": "08", "Stalled": "09", "CapacityShort": "08"}


def test_the_config_map_has_the_problems_with_their_places() -> None:
    problem = Problem("policies/a.yaml", 14, 25, "RC103", "expected an integer", "write 2")
    lines = config_map(statuses(Inputs(wish(), Observed(), NOW), plan(), StatusContext((problem,))))["data"]
    assert lines["problems"] == "policies/a.yaml:14:25: RC103: expected an integer; write 2"


def test_of_more_policies_than_there_is_room_for_those_that_wait_for_somebody_are_told() -> None:
    (pool,) = (each for each in wish().pools if each.name == "a100")
    many = tuple(msgspec.structs.replace(pool, name=f"p{number}") for number in range(2_500))
    desired = msgspec.structs.replace(wish(), pools=(*many, pool))
    waiting = plan(decision(Hold(), WAITS))
    data = config_map(statuses(Inputs(desired, Observed(), NOW), waiting, StatusContext()))["data"]
    assert sum(len(key) + len(line) for key, line in data.items()) < 1 << 20
    assert reason(json.loads(data["GpuPool.a100"])) == WAITS.code
    told_of = sum("." in key for key in data)
    assert data["omitted"] == f"{len(desired.declared) - told_of} more policies omitted because of the size limit"


def test_every_kind_that_people_write_is_told_of() -> None:
    assert {kind.name for kind in POLICY_KINDS} == POLICIES
