"""Gangs go together or not at all: on small fleets, judged by sums alone."""

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as some

from reconciler.model.plan.decision import Evict
from reconciler.model.plan.evaluation import DrainReport
from reconciler.model.plan.plan import Plan
from tests.unit.plan.drain.stage import World, homes

GPUS = 8
NODES = "abcde"

Pods = dict[str, list[tuple[int, int]]]  # on each node: GPUs of a pod, and its gang; 0 is none


def fleets(gpus: some.SearchStrategy[int]) -> some.SearchStrategy[Pods]:
    pods = some.lists(some.tuples(gpus, some.integers(0, 2)), max_size=3)
    return some.lists(pods, min_size=2, max_size=5).map(
        lambda found: {
            name: pods
            for name, pods in zip(NODES, found, strict=False)
            if pods and sum(gpus for gpus, _ in pods) <= GPUS
        }
    )


def world(fleet: Pods, traits: dict[str, Any] | None = None, **more: Any) -> World:
    """web-0, web-1 and so on in order; of each gang and size an application of its own."""
    apps: dict[str, Any] = {f"g{gang}x{gpus}": {"claim": f"g{gang}x{gpus}"} for gpus in range(1, 6) for gang in (1, 2)}
    claims = {f"g{gang}x{gpus}": {"count": gpus, "gangRef": f"g{gang}"} for gpus in range(1, 6) for gang in (1, 2)}
    nodes = {
        name: {"pods": [f"{app(gpus, gang)} {gpus}" for gpus, gang in pods], **(traits or {}).get(name, {})}
        for name, pods in fleet.items()
    }
    case = {"nodes": nodes, "policy": {"utilizationThresholdPercent": 100}, "apps": apps, "claims": claims}
    return World({**case, **more})


def app(gpus: int, gang: int) -> str:
    return f"g{gang}x{gpus}" if gang else "web"


def uids(fleet: Pods) -> dict[str, tuple[str, int, int]]:
    """Of each pod: its node, its GPUs and its gang."""
    numbers, found = Counter[str](), {}
    for name, pods in fleet.items():
        for gpus, gang in pods:
            kind = app(gpus, gang)
            found[f"uid-{kind}-{numbers[kind]}"] = (name, gpus, gang)
            numbers[kind] += 1
    return found


def gone(made: Plan) -> set[str]:
    return {each.node for each in made.report(DrainReport).weighed if each.is_candidate}


def moved(fleet: Pods, leave: set[str]) -> set[str]:
    """What runs on those nodes, and every pod of every gang that one of them is of."""
    pods = uids(fleet)
    gangs = {gang for node, _, gang in pods.values() if node in leave and gang}
    return {uid for uid, (node, _, gang) in pods.items() if node in leave or gang in gangs}


@given(fleets(some.integers(1, 5)), some.integers(1, 5), some.sampled_from(NODES))
@settings(max_examples=120, deadline=None)
def test_whole_gangs_find_places_for_all_their_pods_on_nodes_that_stay(fleet: Pods, most: int, alone: str) -> None:
    """However many nodes may go at once, and though nothing is moved off one of them."""
    limits = {"utilizationThresholdPercent": 100, "maxDrainParallelism": most}
    seen = world(fleet, {alone: {"do_not_disrupt": "true"}}, policy=limits)
    made = seen.planned()
    leave, pods, homes_of = gone(made), uids(fleet), homes(seen, made)
    moving = moved(fleet, leave)
    used = Counter[str]()
    for uid, (node, gpus, _) in pods.items():
        at = homes_of[uid] if uid in moving else node
        assert uid not in moving or at not in leave
        used[at] += gpus
    assert max(used.values(), default=0) <= GPUS


@given(fleets(some.just(1)))
@settings(max_examples=200, deadline=None)
def test_of_nodes_on_which_a_gang_runs_all_go_but_those_that_take_pods_or_whose_pods_find_no_place(fleet: Pods) -> None:
    """Pods of one size: packing others is the greedy order's own affair."""
    seen = world(fleet)
    made = seen.planned()
    leave, homes_of = gone(made), homes(seen, made)
    takers = {homes_of[uid] for uid in moved(fleet, leave)}
    for name in fleet.keys() - leave - takers:
        if len(fleet[name]) == GPUS or not {gang for _, gang in fleet[name]} - {0}:
            continue
        staying = fleet.keys() - leave - {name}
        assert len(moved(fleet, leave | {name})) > sum(GPUS - len(fleet[other]) for other in staying), name


@given(fleets(some.integers(1, 5)), some.sets(some.sampled_from(NODES)), some.integers(0, 4))
@settings(max_examples=120, deadline=None)
def test_a_gang_is_asked_as_a_whole_or_not_at_all_and_within_its_budget(
    fleet: Pods, drained: set[str], allowed: int
) -> None:
    budgets = {
        f"g{gang}x{gpus}": {"claim": f"g{gang}x{gpus}", "budget": allowed} for gpus in range(1, 6) for gang in (1, 2)
    }
    seen = world(fleet, {name: {"draining": 60} for name in drained}, apps=budgets)
    made = seen.planned()
    pods = uids(fleet)
    asked: list[str] = []
    for each in made.decisions:
        if isinstance(each.act, Evict):
            asked += [each.subject.uid, *(other.ref.uid for other in each.act.others)]
    assert len(asked) == len(set(asked))
    for gang in (1, 2):
        members = {uid for uid, (_, _, of) in pods.items() if of == gang}
        assert members <= set(asked) or not members & set(asked)
    spent = Counter(uid.removeprefix("uid-").rpartition("-")[0] for uid in asked if "-g" in uid)
    assert max(spent.values(), default=0) <= allowed
    assert all(homes(seen, made)[uid] not in drained for uid in asked)
