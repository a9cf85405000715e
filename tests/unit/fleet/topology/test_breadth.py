"""Terms about other pods that are too many to be compared: who is judged by them, and what becomes of the others."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from reconciler.fleet.filters.chain import FilterChain
from reconciler.fleet.obstacles import TermsBeyondBound
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.fleet.topology import term_counts, terms
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from tests.unit.fleet.snapshot.test_snapshot import answers
from tests.unit.fleet.stage import node, pod
from tests.unit.fleet.worlds import World, changed, pod_words, worlds

NODES = tuple(node(f"n{each}", {"labels": {"zone": f"z{each % 2}"}}) for each in range(4))


def broad(number: int, **words: Any) -> Pod:
    """It stays away from all pods that are not called so."""
    requirement = {"key": "app", "operator": "NotIn", "values": [f"x{number}"]}
    term = {"topologyKey": "zone", "labelSelector": {"matchExpressions": [requirement]}}
    return pod(f"p{number}", {"cpu": "1", "apart": [term], "labels": {"app": f"a{number}"}, **words})


@pytest.fixture
def few_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (terms, term_counts):
        monkeypatch.setattr(module, "MOST_PAIRS", 30)


def test_within_the_bound_every_term_is_compared(few_pairs: None) -> None:
    pods = tuple(broad(each) for each in range(5))
    fleet = Snapshot(Observed(nodes=NODES, pods=pods))
    assert all(fleet.part(FilterChain).mask(fleet.classes.of(each)).any() for each in pods)


def test_beyond_the_bound_a_pod_goes_nowhere_and_says_why(few_pairs: None) -> None:
    pods = tuple(broad(each) for each in range(10))
    fleet = Snapshot(Observed(nodes=NODES, pods=pods))
    judging = fleet.part(FilterChain)
    found = {each.name: judging.mask(fleet.classes.of(each))[: len(NODES)].any() for each in pods}
    assert sum(found.values()) == 3  # of ten sets of labels each makes ten pairs
    refused = next(each for each in pods if not found[each.name])
    assert any(isinstance(each, TermsBeyondBound) for each in judging.reasons(fleet.classes.of(refused), 0))


def test_who_is_beyond_it_does_not_depend_on_who_came_first(few_pairs: None) -> None:
    pods = [broad(each) for each in range(10)]

    def judged(order: list[Pod]) -> dict[str, bool]:
        fleet = Snapshot(Observed(nodes=NODES, pods=tuple(order)))
        return {each.name: bool(fleet.part(FilterChain).mask(fleet.classes.of(each)).any()) for each in pods}

    assert judged(pods) == judged(pods[::-1])


def test_another_namespace_is_judged_as_ever(few_pairs: None) -> None:
    from msgspec.structs import replace  # noqa: PLC0415

    pods = [broad(each) for each in range(10)]
    other = broad(99)
    other = replace(other, metadata=replace(other.metadata, namespace="other"))
    fleet = Snapshot(Observed(nodes=NODES, pods=(*pods, other)))
    assert fleet.part(FilterChain).mask(fleet.classes.of(other))[: len(NODES)].all()


def test_a_pod_beyond_the_bound_that_runs_keeps_away_whoever_it_could_mean(few_pairs: None) -> None:
    pods = tuple(broad(each, nodeName="n0") for each in range(10))
    fleet = Snapshot(Observed(nodes=NODES, pods=pods))
    plain = fleet.classes.of(pod("plain", {"cpu": "1"}))
    mask = fleet.part(FilterChain).mask(plain)
    assert [bool(mask[fleet.rows.row_of[each.name]]) for each in NODES] == [False, True, False, True]


@settings(max_examples=40, deadline=None)
@given(worlds(), some.data())
def test_a_fleet_that_was_advanced_equals_one_built_afresh(world: World, data: some.DataObject) -> None:
    """As in tests/unit/fleet/snapshot/test_snapshot.py, where next to nothing is within the bound."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (terms, term_counts):
            patch.setattr(module, "MOST_PAIRS", 2)
        asking = [pod(f"a{number}", data.draw(pod_words)) for number in range(3)]
        fleet = Snapshot(world.observed())
        answers(fleet, asking)
        for _ in range(data.draw(some.integers(1, 4))):
            changed(data, world)
            fleet.advance(world.observed())
            if data.draw(some.booleans()):
                answers(fleet, asking)
        fresh = Snapshot(world.observed())
        everybody = [*asking, *world.pods.values()]
        assert answers(fleet, everybody) == answers(fresh, everybody)
