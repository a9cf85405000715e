"""Which nodes can go together, on small fleets, judged by sums alone; and what holds for every plan of drains."""

from itertools import product
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as some

from reconciler.fleet.fleet import Fleet
from reconciler.model.planned.action import Evict
from reconciler.plan.planner import plan
from tests.unit.drain_stage import World, homes

GPUS = 8
NODES = "abcde"

Pods = dict[str, list[int]]  # GPUs of the pods on each node

FLEETS = some.lists(some.lists(some.integers(1, 5), max_size=3), min_size=2, max_size=5).map(
    lambda found: {name: pods for name, pods in zip(NODES, found, strict=False) if sum(pods) <= GPUS}
)


def world(fleet: Pods, **more: Any) -> World:
    nodes = {name: {"pods": [f"web {gpus}" for gpus in pods]} for name, pods in fleet.items()}
    return World({"nodes": nodes, "policy": {"utilizationThresholdPercent": 100}, **more})


def fits(pods: list[int], free: list[int]) -> bool:
    """By trying every way."""
    for ways in product(range(len(free)), repeat=len(pods)):
        left = list(free)
        for gpus, at in zip(pods, ways, strict=True):
            left[at] -= gpus
        if min(left, default=0) >= 0:
            return True
    return not pods


def free_without(fleet: Pods, gone: set[str]) -> list[int]:
    """Of busy nodes that stay."""
    return [GPUS - sum(pods) for name, pods in fleet.items() if name not in gone and pods]


@given(FLEETS.filter(lambda fleet: sum(map(len, fleet.values())) <= 8))
@settings(max_examples=200, deadline=None)
def test_all_that_go_together_fit_on_those_that_stay(fleet: Pods) -> None:
    made = world(fleet).planned()
    gone = {each.node for each in made.weighed if each.is_candidate}
    assert fits([gpus for name in gone for gpus in fleet[name]], free_without(fleet, gone))


@given(FLEETS.filter(lambda fleet: sum(map(len, fleet.values())) <= 8))
@settings(max_examples=200, deadline=None)
def test_what_is_told_to_fit_nowhere_fits_nowhere(fleet: Pods) -> None:
    """A node of one pod: packing several is the greedy order's own affair."""
    given = world(fleet)
    made = given.planned()
    gone = {each.node for each in made.weighed if each.is_candidate}
    to = homes(given, made)
    free = {name: GPUS - sum(pods) for name, pods in fleet.items() if name not in gone and pods}
    uids = iter(range(100))
    for name, pods in fleet.items():
        for gpus in pods:
            uid = f"uid-web-{next(uids)}"
            if name in gone:
                free[to[uid]] -= gpus
    assert min(free.values(), default=0) >= 0
    for each in made.weighed:
        if each.reason.code == "PodWithoutPlace" and len(fleet[each.node]) == 1:
            others = [left for name, left in free.items() if name != each.node]
            assert max(others, default=0) < fleet[each.node][0]


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
    begun = [each for each in made.decisions if each.reason.code == "Drained"]
    assert len(begun) <= drains
    batch = made.memory.drained.batch
    assert {each.subject.name for each in begun} == {name for name, _ in (batch.nodes if batch else ())}


def test_a_fleet_that_moved_on_plans_as_one_that_is_new() -> None:
    before = world({"a": [2], "b": [5], "c": [8]})
    after = world({"a": [2], "b": [6], "c": [1]})
    moved = Fleet(before.inputs.observed)
    plan(before.inputs, moved)
    moved.advance(after.inputs.observed)
    assert plan(after.inputs, moved) == plan(after.inputs, Fleet(after.inputs.observed))


def test_nothing_is_remembered_of_a_drain_where_no_policy_names_a_pool() -> None:
    case: dict[str, Any] = {"nodes": {"a": {"pods": ["web 1"]}, "b": {"pods": ["web 4"]}}, "policy": "none"}
    made = World(case | {"remembers": {"setbacks": {"a": [10, 1]}}}).planned()
    assert made.decisions == ()
    assert made.memory == World(case).inputs.memory
