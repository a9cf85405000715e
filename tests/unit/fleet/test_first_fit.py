"""A walk over the nodes finds what looking at one node after the other finds, however little it looks at."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from reconciler.fleet import first_fit
from reconciler.fleet.filters.chain import FilterChain
from reconciler.fleet.first_fit import FirstFitCursor, Search
from reconciler.fleet.pod_classes import PodClass
from reconciler.fleet.rows import Mask
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.observed import Observed
from tests.unit.fleet.stage import Words, node, pod
from tests.unit.fleet.worlds import World, alike_words, pod_words, worlds

Put = list[list[tuple[int, int]]]
APART = {
    "apart": [{"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}],
    "labels": {"app": "x"},
    "owner": "x",
}


def walked(fleet: Snapshot, pods: list[tuple[PodClass, int]], search: Search) -> tuple[Put, str]:
    walk = FirstFitCursor(fleet, search)
    return [walk.put(pod_class, count) for pod_class, count in pods], walk.pointer


def one_after_the_other(fleet: Snapshot, pods: list[tuple[PodClass, int]], search: Search) -> tuple[Put, str]:
    """First fit, from where the last pod went."""
    order = fleet.rows.order.tolist()[:: -1 if search.backwards else 1]
    at = order.index(fleet.rows.row_of[search.pointer]) if search.pointer else 0
    found: Put = []
    for pod_class, count in pods:
        put: dict[int, int] = {}
        for _ in range(count):
            turn = range(at, at + len(order))
            place = next((each % len(order) for each in turn if takes(fleet, pod_class, order, each, search)), None)
            if place is None:
                break
            at = place
            fleet.add(pod_class, order[at])
            put[order[at]] = put.get(order[at], 0) + 1
        found.append(list(put.items()))
    return found, fleet.rows.node(order[at]).name if order else ""


def takes(fleet: Snapshot, pod_class: PodClass, order: list[int], place: int, search: Search) -> bool:
    row = order[place % len(order)]
    return (search.allowed is None or bool(search.allowed[row])) and fleet.part(FilterChain).fits(pod_class, row)


def summed(put: Put) -> Put:
    """As many as came to each node, however many at once."""
    sums: list[dict[int, int]] = []
    for each in put:
        sums.append({})
        for row, count in each:
            sums[-1][row] = sums[-1].get(row, 0) + count
    return [list(each.items()) for each in sums]


def assert_same(fleet: Snapshot, pods: list[tuple[PodClass, int]], search: Search) -> Put:
    with fleet.fork():
        put, pointer = walked(fleet, pods, search)
        after = fleet.fingerprint()
    with fleet.fork():
        expected, at = one_after_the_other(fleet, pods, search)
        assert fleet.fingerprint() == after
    assert (summed(put), pointer) == (expected, at)
    return expected


@settings(max_examples=150, deadline=None)
@given(worlds(), some.lists(some.one_of(alike_words, pod_words), max_size=8), some.data())
def test_a_walk_finds_what_looking_at_each_node_finds(world: World, words: list[Words], data: some.DataObject) -> None:
    fleet = Snapshot(world.observed())
    rows = sorted(fleet.rows.row_of.values())
    pods = [
        (fleet.classes.of(pod(f"a{number}", each)), data.draw(some.integers(1, 3))) for number, each in enumerate(words)
    ]
    allowed: Mask | None = None
    if data.draw(some.booleans()):
        allowed = np.zeros(fleet.rows.capacity, bool)
        allowed[data.draw(some.lists(some.sampled_from(rows))) if rows else []] = True
    start = data.draw(some.sampled_from(["", *world.nodes]))
    search = Search(pointer=start, backwards=data.draw(some.booleans()), allowed=allowed)
    with pytest.MonkeyPatch.context() as few, fleet.fork():
        few.setattr(first_fit, "_FEW", data.draw(some.integers(1, 3)))
        few.setattr(first_fit, "_AT_ONCE", data.draw(some.integers(1, 2)))
        few.setattr(first_fit, "_MOST_REFUSALS", data.draw(some.integers(0, 2)))
        for row in data.draw(some.lists(some.sampled_from(rows), max_size=3, unique=True)) if rows else []:
            with fleet.fork() as fork:
                fleet.take_away(row)
                walked(fleet, pods[:2], search)
                if data.draw(some.booleans()):
                    fork.commit()
        assert_same(fleet, pods, search)


@pytest.mark.parametrize("seed", range(6))
def test_also_where_many_nodes_are_full_and_others_refuse(seed: int) -> None:
    words = random.Random(seed)
    amounts = [2, 2, 2, 4] if seed else [4]
    nodes = [
        node(f"n{number:03}", {"has": {"cpu": words.choice(amounts), "pods": 9}, "labels": {"zone": f"z{number}"}})
        for number in range(300)
    ]
    there = [pod(f"full{each}", {"cpu": 2, "nodeName": f"n{each:03}"}) for each in words.sample(range(300), 200)]
    there += [pod(f"x{each}", {**APART, "nodeName": f"n{each:03}"}) for each in words.sample(range(300), 150)]
    fleet = Snapshot(Observed(nodes=tuple(nodes), pods=tuple(there)))
    asked: list[Words] = [
        {"cpu": 3},
        {"cpu": 1},
        {"cpu": "700m"},
        {**APART, "cpu": 1},
        {"cpu": 1, "ports": [{"hostPort": 80}]},
    ]
    pods = [(fleet.classes.of(pod(f"a{each}", words.choice(asked))), words.randrange(1, 40)) for each in range(20)]
    allowed = np.array([words.random() < 0.5 + 0.5 * (seed < 2) for _ in range(fleet.rows.capacity)])
    put = assert_same(fleet, pods, Search(pointer="n123", backwards=bool(seed % 2), allowed=allowed))
    assert sum(count for each in put for _, count in each) > 100


@pytest.mark.parametrize("words", [{"cpu": 3}, {"cpu": 3, **APART}, {"cpu": 3, "ports": [{"hostPort": 80}]}])
def test_where_there_is_room_close_by_a_search_takes_no_more_steps_in_a_larger_fleet(words: Words) -> None:
    steps = []
    for count in (100, 5_000):
        nodes = [node(f"n{number:04}", {"labels": {"zone": f"z{number}"}}) for number in range(count)]
        fleet = Snapshot(Observed(nodes=tuple(nodes)))
        walk = FirstFitCursor(fleet, Search())
        asked = [fleet.classes.of(pod(f"a{number}", {**words, "memory": number})) for number in range(40)]
        assert all(walk.put(each, 1) for each in asked)
        steps.append(walk.meter.steps)
    assert steps[0] == steps[1]
