"""What holds for every plan of drains, on small fleets (which nodes can go together: test_brute_force.py)."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as some

from reconciler.fleet.fleet import Fleet
from reconciler.model.plan.decision import Evict
from reconciler.plan.drain.codes.emptying import BEGINS, Drained
from reconciler.plan.planner import plan
from tests.unit.plan.drain.stage import World, homes

GPUS = 8
NODES = "abcde"

Pods = dict[str, list[int]]  # GPUs of the pods on each node

FLEETS = some.lists(some.lists(some.integers(1, 5), max_size=3), min_size=2, max_size=5).map(
    lambda found: {name: pods for name, pods in zip(NODES, found, strict=False) if sum(pods) <= GPUS}
)


def world(fleet: Pods, **more: Any) -> World:
    nodes = {name: {"pods": [f"web {gpus}" for gpus in pods]} for name, pods in fleet.items()}
    return World({"nodes": nodes, "policy": {"utilizationThresholdPercent": 100}, **more})


@given(FLEETS, some.integers(0, 3), some.sets(some.sampled_from(NODES)))
@settings(max_examples=200, deadline=None)
def test_no_plan_asks_more_pods_to_leave_than_their_budget_allows_or_without_a_place(
    fleet: Pods, allowed: int, drained: set[str]
) -> None:
    said: dict[str, Any] = {
        name: {"pods": [f"web {gpus}" for gpus in pods], **({"draining": 60} if name in drained else {})}
        for name, pods in fleet.items()
    }
    given = World({"nodes": said, "apps": {"web": {"budget": allowed}}})
    made = given.planned()
    asked = [each for each in made.decisions if isinstance(each.act, Evict)]
    assert len(asked) <= allowed
    assert all(homes(given, made)[each.subject.uid] not in drained for each in asked)


@given(FLEETS, some.sets(some.sampled_from(NODES)), some.integers(1, 3), some.integers(1, 3))
@settings(max_examples=200, deadline=None)
def test_limits_are_kept_and_what_begins_is_remembered_as_one_batch(
    fleet: Pods, due: set[str], most: int, drains: int
) -> None:
    said = {
        name: {"pods": [f"web {gpus}" for gpus in pods], **({"candidate": 900} if name in due else {})}
        for name, pods in fleet.items()
    }
    limits = {"maxScaleDownParallelism": max(most, drains), "maxDrainParallelism": drains}
    case = {"nodes": said, "policy": {"utilizationThresholdPercent": 100, **limits}}
    first = World(case)
    made = first.planned()
    begun = [each for each in made.decisions if type(each.reason.facts) in BEGINS]
    assert len(begun) <= max(most, drains)
    assert sum(isinstance(each.reason.facts, Drained) for each in begun) <= drains
    batch = made.memory.drained.batch
    assert {each.subject.name for each in begun} == {name for name, _ in (batch.nodes if batch else ())}


def test_a_fleet_that_moved_on_plans_as_one_that_is_new() -> None:
    before = world({"a": [2], "b": [5], "c": [8]})
    after = world({"a": [2], "b": [6], "c": [1]})
    moved = Fleet(before.inputs.observed)
    plan(before.inputs, moved)
    moved.advance(after.inputs.observed)
    assert plan(after.inputs, moved) == plan(after.inputs, Fleet(after.inputs.observed))


def test_so_does_one_in_which_pods_were_told_to_save_their_work_and_are_no_more() -> None:
    def story(node: dict[str, Any], **train: Any) -> World:
        nodes = {"a": {"pods": ["train 2"], **node}, "b": {"pods": ["web 5"]}}
        return World({"nodes": nodes, "apps": {"train": {"checkpoint": "120s", **train}}})

    steps = [story({}), story({"draining": 60}), story({"draining": 90}, told=90), story({}, told=60), story({})]
    moved = Fleet(steps[0].inputs.observed)
    found = []
    for step in steps:
        moved.advance(step.inputs.observed)
        made = plan(step.inputs, moved)
        assert made == plan(step.inputs, Fleet(step.inputs.observed))
        found.append([each.reason.code for each in made.decisions if each.subject.kind == "Pod"])
    assert found == [[], ["PodToldToSave"], ["PodSavesItsWork"], ["EvictionCalledOff"], []]


def test_nothing_is_remembered_of_a_drain_where_no_policy_names_a_pool() -> None:
    case: dict[str, Any] = {"nodes": {"a": {"pods": ["web 1"]}, "b": {"pods": ["web 4"]}}, "policy": "none"}
    made = World(case | {"remembers": {"setbacks": {"a": [10, 1]}}}).planned()
    assert made.decisions == ()
    assert made.memory == World(case).inputs.memory
