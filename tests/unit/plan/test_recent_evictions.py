"""Pods that were evicted lately have a place until somebody has made them anew, and who must stay is not evicted."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as some

from reconciler.model.plan.decision import Delete, Evict, Taint
from reconciler.plan.drain.codes import emptying
from reconciler.plan.recent_evictions import unreplaced
from tests.unit.plan.drain.stage import World as Drained
from tests.unit.plan.scaling.stage import World

NODE = some.tuples(some.integers(0, 8), some.sampled_from(["", "soft 300", "soft 10", "hard 0", "hard -5"]))


def scaled(nodes: list[tuple[int, str]], gpus: int, ago: int) -> tuple[World, set[str]]:
    """One pod was evicted; the names of the nodes that are deleted, or on their way out, after the plan."""
    names = [f"a100-{at:03}" for at in range(len(nodes))]
    marked = {at: mark for at, (used, mark) in enumerate(nodes) if mark and not used}
    case = {
        "nodes": len(nodes),
        "busy": "",
        "uses": {at: used for at, (used, _) in enumerate(nodes) if used},
        "marked": marked,
        "evicted": [{"node": "gone", "home": names[0], "ago": ago, "gpus": gpus, "gone": True}],
    }
    world = World(case)
    going = {names[at] for at in marked}
    for each in world.planned().decisions:
        match each.act:
            case Delete():
                going.add(each.subject.name)
            case Taint(value=str()):
                going.add(each.subject.name)
            case Taint(value=None):
                going.discard(each.subject.name)
    return world, going


@settings(max_examples=40, deadline=None)
@given(some.lists(NODE, min_size=1, max_size=6), some.integers(1, 8), some.sampled_from([5, 299, 300, 301]))
def test_scaling_takes_no_node_that_is_the_only_place_of_a_pod_evicted_lately(
    nodes: list[tuple[int, str]], gpus: int, ago: int
) -> None:
    world, going = scaled(nodes, gpus, ago)
    free = {f"a100-{at:03}": 8 - used for at, (used, _) in enumerate(nodes)}
    takes = {name for name, left in free.items() if left >= gpus}
    assert bool(unreplaced(world.inputs)) == (ago <= 300)
    if ago <= 300 and takes:
        assert takes - going


APPS: tuple[dict[str, Any], ...] = (
    {},
    {"safe": "on-completion"},
    {"safe": "on-completion", "owner": "none"},
    {"gone": True},
    {"gone": "leaving"},
    {"gone": "made anew", "owner": "Job"},
    {"gone": True, "safe": "true"},
    {"namespace": "kube-system", "age": 60},
    {"namespace": "kube-system", "age": 60, "budget": 1},
    {"namespace": "kube-system", "age": 7_200},
    {"owner": "none", "daemon": "true"},
)
KEPT = frozenset({1, 2, 3, 4, 5, 7})  # whom nobody may evict


@settings(max_examples=40, deadline=None)
@given(some.lists(some.lists(some.integers(0, len(APPS) - 1), max_size=3), min_size=2, max_size=4), some.booleans())
def test_who_must_stay_is_never_evicted_and_every_other_node_may_go(there: list[list[int]], is_drained: bool) -> None:
    """Each node has pods of some applications; the first is emptied already, or is a candidate for long enough."""
    nodes: dict[str, Any] = {f"n{at}": {"pods": [f"app{app} 1" for app in apps]} for at, apps in enumerate(there)}
    nodes["n0"] |= {"draining": 60} if is_drained else {"candidate": 900}
    nodes["roomy"] = {"pods": ["app0 6"], "gpus": 64}
    apps = {f"app{number}": said for number, said in enumerate(APPS)}
    case = {"nodes": nodes, "apps": apps, "policy": {"utilizationThresholdPercent": 60}}
    made = Drained(case).planned()
    evicted = {each.subject.name for each in made.decisions if isinstance(each.act, Evict)}
    assert not {name for name in evicted if int(name.partition("-")[0].removeprefix("app")) in KEPT}
    begun = {each.subject.name for each in made.decisions if isinstance(each.reason.facts, emptying.Drained)}
    assert not {name for name in begun if set(there[int(name[1:])]) & KEPT}
