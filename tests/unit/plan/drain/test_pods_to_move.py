"""What is found of all pods of a node at once is what would be found of them one by one, and holds while they stay."""

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as some

from reconciler.fleet.fleet import Fleet
from reconciler.plan.draft import Draft
from reconciler.plan.drain.blockers import blocker, moves
from reconciler.plan.drain.context import DrainContext
from reconciler.plan.drain.pods_to_move import Movings, first_blocker, take
from reconciler.plan.nodes.eviction import Remaining
from tests.unit.plan.drain.stage import World

APPS = "vwxyz"

# Mostly nothing in particular; and now and then each thing that a line of the table, or a budget, looks at.
KINDS = some.fixed_dictionaries(
    {},
    optional={
        "budget": some.sampled_from([None, 0, 1, 2, 9]),
        "healthy": some.integers(0, 3),
        "unhealthy": some.just("AlwaysAllow"),
        "edited": some.sampled_from([1, 2]),
    },
) | some.sampled_from(
    [
        {"budgets": [1, 2]},
        {"namespace": "kube-system"},
        {"namespace": "kube-system", "budget": 1},
        {"namespace": "kube-system", "safe": "true"},
        {"safe": "false"},
        {"safe": "on-completion"},
        {"gone": True},
        {"gone": "leaving", "safe": "true"},
        {"namespace": "kube-system", "age": 60},
        {"do_not_disrupt": "true"},
        {"do_not_disrupt": "10m"},
        {"do_not_disrupt": "2h"},
        {"volumes": ["emptyDir"]},
        {"volumes": ["memory"]},
        {"volumes": ["emptyDir"], "may_lose": "scratch"},
        {"volumes": ["hostPath"], "safe": "true"},
        {"owner": "none"},
        {"owner": "none", "safe": "true"},
        {"owner": "DaemonSet"},
        {"owner": "Workflow"},
        {"owner": "Workflow", "safe": "true"},
        {"claim": "c"},
        {"smart": True},
        {"odd": True},
    ]
)
PODS = some.tuples(some.sampled_from(APPS), some.sampled_from(["", "", "", "leaving", "unready", "done"]))
WORLDS = some.tuples(
    some.lists(KINDS, min_size=len(APPS), max_size=len(APPS)),
    some.lists(some.lists(PODS, max_size=5), min_size=1, max_size=6),
)

Drawn = tuple[list[dict[str, Any]], list[list[tuple[str, str]]]]


def drawn_world(drawn: Drawn) -> World:
    kinds, nodes = drawn
    said = {f"n{at}": {"pods": [f"{app} 0 {how}".strip() for app, how in pods]} for at, pods in enumerate(nodes)}
    return World({"nodes": said, "apps": dict(zip(APPS, kinds, strict=True)), "gangs": {"c": "together"}})


@given(WORLDS)
@settings(max_examples=150, deadline=None)
def test_what_keeps_the_pods_of_a_node_is_what_keeps_the_first_of_them_that_is_kept(drawn: Drawn) -> None:
    inputs = drawn_world(drawn).inputs
    site = DrainContext(inputs, Draft(Fleet(inputs.observed), inputs.desired))
    what_if = site.fleet.snapshot
    at_once, one_by_one = Remaining(site.budgets), Remaining(site.budgets)
    for seen in site.drain_nodes:
        moving = what_if.part(Movings).of(what_if.rows.row_of[seen.name])
        pods = [pod for pod in site.fleet.pods_on(seen.name) if moves(pod)]
        expected = next((found for pod in pods if (found := blocker(site, one_by_one, seen, pod))), None)
        assert first_blocker(site, at_once, seen, moving) == expected
        if expected is None:
            take(at_once, moving)
            for pod in pods:
                one_by_one.take(pod)
    for pod in inputs.observed.pods:
        assert at_once.why_not(pod) == one_by_one.why_not(pod)


def test_what_was_found_of_a_node_holds_until_a_pod_of_it_changes() -> None:
    world = drawn_world(([{}] * len(APPS), [[("v", ""), ("w", "")], [("x", "")]]))
    fleet = Fleet(world.inputs.observed)
    row_of = fleet.snapshot.rows.row_of
    movings = fleet.snapshot.part(Movings)
    before = {name: movings.of(row_of[name]) for name in ("n0", "n1")}
    first, *others = world.pods
    leaving = msgspec.structs.replace(
        first, metadata=msgspec.structs.replace(first.metadata, deletion_timestamp="2026-11-02T08:00:00Z")
    )
    fleet.advance(msgspec.structs.replace(world.inputs.observed, pods=(leaving, *others)))
    assert movings.of(row_of["n1"]) is before["n1"]
    assert [pod.name for pod in before["n0"].pods] == ["v-0", "w-0"]
    assert [pod.name for pod in movings.of(row_of["n0"]).pods] == ["w-0"]
