"""Why a node is a candidate for a drain or not; and what is said to make it one, done, makes it one."""

from typing import Any

import pytest

from reconciler.fleet.fleet import Fleet
from reconciler.plan.drain.reasons import BLOCKERS, BUDGET_TAKEN, ELIGIBILITY, GANG_NO_PLACE, NO_PLACE, OTHERS_TURN
from reconciler.plan.explanation.about import About, Asked
from reconciler.plan.explanation.flips.changes import LINES, changes_of, flipped, weighed_again
from reconciler.plan.explanation.subject import about
from reconciler.plan.kept.scene import Scene
from reconciler.plan.removal import CORDONED, DISRUPTED, DRIVER_UPGRADE
from tests.unit.drain_stage import World, tables

CASES = tables()


def asked(case: dict[str, Any], node: str) -> dict[str, list[str]]:
    world = World(case)
    answer: About = about(Scene(world.inputs, Fleet(world.inputs.observed), world.planned()), Asked("node", node))
    found: dict[str, list[str]] = {}
    for label, text in answer.rows:
        found.setdefault(label, []).append(text)
    return found


def test_a_candidate_says_since_when_it_is_one() -> None:
    (told,) = asked({"nodes": {"a": {"pods": ["web 2"], "candidate": 60}, "b": {"pods": ["web 5"]}}}, "a")["drained"]
    assert told.startswith(
        "a candidate: a is not needed: its pods would fit on b. It goes after 10 min. It is one since"
    )


def test_one_that_is_none_says_why_and_what_would_make_it_one() -> None:
    rows = asked({"nodes": {"a": {"pods": ["web 4"]}, "b": {"pods": ["web 4"]}}}, "a")
    assert rows["drained"][0].startswith("no: 4 of 8 nvidia.com/gpu of a are asked for, 50 %; below 50 % it goes.")
    assert rows["drained if"] == ["utilizationThresholdPercent of DrainPolicy/drains is 51 or more"]


def test_all_that_stands_in_the_way_is_told_together() -> None:
    apps = {"web": {"owner": "none", "budget": 0, "volumes": ["emptyDir"]}}
    case = {"nodes": {"a": {"pods": ["web 4"]}, "b": {"pods": ["job 4"]}}, "apps": apps}
    (told,) = asked(case, "a")["drained if"]
    assert told.split(" and ") == [
        "utilizationThresholdPercent of DrainPolicy/drains is 51 or more",
        "Pod/team/web-0 carries cluster-autoscaler.kubernetes.io/safe-to-evict: true",
        "PodDisruptionBudget/team/web allows a disruption",
    ]


def test_where_nothing_near_would_do_nothing_is_said() -> None:
    """No node like this one has its label."""
    apps = {"web": {"selects": {"zone": "x"}}}
    rows = asked({"nodes": {"a": {"pods": ["web 3"]}, "b": {"pods": ["job 6"]}}, "apps": apps}, "a")
    assert rows["drained"][0].startswith("no: no node that stays would take Pod/team/web-0")
    assert "drained if" not in rows


def test_of_a_pool_that_is_not_named_nothing_is_said() -> None:
    assert "drained" not in asked({"nodes": {"a": {"pods": ["web 2"]}}, "policy": "none"}, "a")


KEPT = {each.code for each in (*ELIGIBILITY, *BLOCKERS)} | {DISRUPTED.code, DRIVER_UPGRADE.code, CORDONED.code}


def test_each_reason_for_which_a_node_is_none_has_its_change() -> None:
    assert set(LINES) == KEPT


@pytest.mark.parametrize("code", sorted(KEPT))
def test_what_is_said_to_make_it_a_candidate_does(code: str) -> None:
    """In some case each change alone is enough, or it and those behind it are."""
    for case in CASES.values():
        world = World(case)
        for weighed in world.planned().weighed if not case.get("scales") or code == OTHERS_TURN.code else ():
            if weighed.reason.code == code and not weighed.is_candidate:
                after, told = flipped(world.inputs, weighed)
                if after is not None:
                    again = weighed_again(after, weighed.node)
                    assert again is not None
                    assert again.is_candidate
                    assert changes_of(world.inputs, weighed) == " and ".join(told)
                    return
    pytest.fail(f"no case shows a change that lifts {code}", pytrace=False)


@pytest.mark.parametrize("name", CASES)
def test_a_change_lifts_what_it_is_told_for(name: str) -> None:
    """Or another stands in the way then; never is a change told after which the node is none."""
    world = World(CASES[name])
    for weighed in world.planned().weighed:
        line = LINES.get(weighed.reason.code) if not weighed.is_candidate else None
        edit = line(world.inputs, weighed) if line is not None else None
        if edit is None:
            continue
        first = weighed_again(edit.inputs, weighed.node)
        if first is not None and first.is_candidate:
            assert changes_of(world.inputs, weighed) == edit.told
        elif weighed.reason.code not in MAY_NOT_DO:
            assert first is None or first.reason != weighed.reason


# A node with room is no place for what selects others; what goes first may take the budget again.
MAY_NOT_DO = {NO_PLACE.code, GANG_NO_PLACE.code, BUDGET_TAKEN.code}
