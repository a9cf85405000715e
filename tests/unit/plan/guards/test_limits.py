"""What guards count, hold and let pass, as tests/cases/guards/ says; over restarts, since a plan remembers."""

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from reconciler.model.plan.decision import Decision, Hold
from reconciler.model.plan.guard_verdict import GuardVerdict
from reconciler.model.plan.memory import Memory
from reconciler.model.plan.plan import Plan
from reconciler.plan.guards.reasons import REASONS
from reconciler.report.sentences import sentence
from tests.unit.plan.decision_lines import lines_of
from tests.unit.plan.guards.stage import MINUTE_MS, World, table

TABLES = {name: table(name) for name in ("limits.yaml", "hours.yaml", "approvals.yaml")}
CASES = {
    f"{file.removesuffix('.yaml')}: {name}": case for file, cases in TABLES.items() for name, case in cases.items()
}


def expected(case: dict[str, Any], world: World) -> list[str]:
    """The decisions that the case lists; without a list, all that planners want."""
    wanted: list[str] = case.get("decisions", lines_of(world.verdict().decisions, world.now))
    return wanted


def acting(made: Plan) -> set[str]:
    return {each.subject.title for each in made.decisions if not isinstance(each.act, Hold)}


def counted(guarded: GuardVerdict) -> dict[str, str]:
    return {f"{each.period} {each.measure}": f"{each.counted} of {each.allowed}" for each in guarded.counts}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_guards_hold_what_the_case_says(case: dict[str, Any]) -> None:
    world = World(case)
    made = world.planned()
    assert lines_of(made.decisions, world.now) == expected(case, world)
    held = [each for each in made.decisions if isinstance(each.act, Hold)]
    assert all(sentence(each.reason) for each in held)
    _judge_what_is_told(case, world, made, held)


_LISTS = {
    "needs_objects": "needed_objects",
    "needs_losses": "needed_losses",
    "alone": "alone",
    "by_the_hour": "by_the_hour",
}


def _judge_what_is_told(case: dict[str, Any], world: World, made: Plan, held: list[Decision]) -> None:
    real = [each for each in made.guarded if not each.would]
    assert sum(each.held for each in real) == sum(isinstance(each.reason.facts, REASONS) for each in held)
    for key, told in case.get("counted", {}).items():
        assert {counted(each).get(key) for each in real} == {told}
    if "would" in case:
        (would,) = (each for each in made.guarded if each.would)
        assert counted(would) == case["would"]
    if "needs" in case:
        assert [msgspec.to_builtins(each.needed) for each in real] == [
            dict.fromkeys(msgspec.to_builtins(real[0].needed)) | case["needs"]
        ]
    for key, field in _LISTS.items():
        if key in case:
            assert [getattr(each, field) for each in real] == [tuple(case[key])]
    if "approval" in case:
        assert [each.approvals for each in real] == [tuple(case["approval"].split())]
    if "remembered" in case:
        assert len(made.memory.marks) == case["remembered"]
    if "room_in" in case:
        until = {each.act.until for each in held if isinstance(each.act, Hold)}
        assert until == {world.now + case["room_in"] * MINUTE_MS}
        assert made.wake_at == min(each for each in until if each is not None)


def shown(cases: Iterable[dict[str, Any]]) -> set[str]:
    """The codes of all holds."""
    return {
        each.reason.code for case in cases for each in World(case).planned().decisions if isinstance(each.act, Hold)
    }


def test_each_reason_of_a_guard_appears_in_a_case() -> None:
    assert shown(CASES.values()) >= {"OverPlanLimit", "HourIsFull", "OverHourLimit", "BehindOthers"}


def test_the_count_of_an_hour_holds_over_a_restart() -> None:
    """The memory is all that is left: as text, read again, by a process that knows nothing."""
    case = {
        "pools": {"a100": {"nodes": 120}},
        "guards": {"fleet": {"perHour": {"maxRemovedNodes": 24}}},
        "does": ["scale-down a100 0-23"],
    }
    kept = msgspec.json.encode(World(case).planned().memory)
    later = World({**case, "pools": {"a100": {"nodes": 120, "gone": "0-23"}}, "does": ["scale-down a100 24"]})
    remembered = msgspec.structs.replace(later.inputs, memory=msgspec.json.decode(kept, type=Memory))
    later.inputs = remembered
    (decision,) = later.planned().decisions
    assert decision.reason.code == "HourIsFull"


def test_a_plan_that_is_made_again_before_it_is_seen_to_work_counts_the_same() -> None:
    case = {
        "pools": {"a100": {"nodes": 60}},
        "guards": {"fleet": {"perPlan": {"maxRemovedNodes": 24}, "perHour": {"maxRemovedNodes": 24}}},
        "does": ["scale-down a100 0-23"],
    }
    first = World(case).planned()
    again = World({**case, "minutes_later": 5})
    again.inputs = msgspec.structs.replace(again.inputs, memory=first.memory)
    second = again.planned()
    assert acting(second) == acting(first)
    assert second.memory == first.memory


def test_reasons_name_guard_limit_and_policy_line() -> None:
    made = World(CASES["limits: 25 of 120 nodes at 24 allowed removes nothing"]).planned()
    reason = made.decisions[0].reason
    assert sentence(reason) == (
        "this plan exceeds the limits of ChangeGuard/fleet (removed nodes: 25 of 24 allowed). Until the plan removes "
        "less or is approved, this change is not carried out: Node/a100-80 does not exist yet and is created."
    )
    assert reason.origin
    assert (reason.origin.file, reason.origin.line) == ("policies/prod.yaml", 17)
