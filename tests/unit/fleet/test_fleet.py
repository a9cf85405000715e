"""A fleet that moved on from one sighting to the next answers as one that is made anew."""

import random

import pytest

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.metadata import Condition
from reconciler.model.cluster.node import Node, NodeClaim, NodeTaint
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from tests import builders

POOLS = ("a", "b", "")
NODES = tuple(f"n{number}" for number in range(5))


def node(chance: random.Random, name: str) -> Node:
    taints = (NodeTaint(names.DISRUPTED, "NoSchedule"),) * chance.randrange(2)
    leaving = chance.choice(["", "2026-11-16T08:00:00Z"])
    labels = {names.POOL: chance.choice(POOLS)}
    return builders.node(name, labels=labels, deletion_timestamp=leaving, taints=taints)


def claim(chance: random.Random, name: str) -> NodeClaim:
    told = (Condition("Drifted", chance.choice(["True", "False"])),) * chance.randrange(2)
    labels = {names.KARPENTER_POOL: chance.choice(POOLS)}
    leaving = chance.choice(["", "2026-11-16T08:00:00Z"])
    return builders.claim(name, labels=labels, deletion_timestamp=leaving, conditions=told)


def pod(chance: random.Random, name: str) -> Pod:
    return builders.pod(name, namespace=chance.choice(["x", "y"]), node_name=chance.choice(["", *NODES]))


def next_of(chance: random.Random, before: tuple, make, most: int) -> tuple:  # type: ignore[no-untyped-def,type-arg]
    """Some stay as they are, others are replaced, go or come; now and then nothing changes at all."""
    if before and chance.random() < 0.3:
        return before
    known = {each.name: each for each in before}
    for number in chance.sample(range(most), chance.randrange(1, 4)):
        name = f"n{number}"
        if name in known and chance.random() < 0.5:
            del known[name]
        else:
            known[name] = make(chance, name)
    return tuple(known.values())


def told(fleet: Fleet) -> object:
    return (
        [(fleet.nodes_of(each), fleet.claims_of(each), fleet.drifted_claims_of(each)) for each in POOLS],
        [(fleet.node(each), list(fleet.pods_on(each))) for each in NODES],
        (list(fleet.nodes_taken_away), list(fleet.claims_leaving)),
    )


@pytest.mark.parametrize("seed", range(20))
def test_an_advanced_fleet_answers_as_a_new_one(seed: int) -> None:
    chance = random.Random(seed)
    observed = Observed()
    advanced = Fleet(observed)
    for _ in range(30):
        observed = Observed(
            nodes=next_of(chance, observed.nodes, node, 5),
            node_claims=next_of(chance, observed.node_claims, claim, 5),
            pods=next_of(chance, observed.pods, pod, 12),
        )
        advanced.advance(observed)
        if chance.random() < 0.7:  # several sightings may go by before somebody asks
            assert told(advanced) == told(Fleet(observed))
    assert told(advanced) == told(Fleet(observed))


def test_a_list_that_was_handed_out_stays_as_it_was() -> None:
    chance = random.Random(1)
    one = builders.pod("one", node_name="n1")
    fleet = Fleet(Observed(pods=(one,)))
    before = fleet.pods_on("n1")
    fleet.advance(Observed(pods=(one, pod(chance, "two"), builders.pod("three", node_name="n1"))))
    assert [each.name for each in fleet.pods_on("n1") if each.name in {"one", "three"}] == ["one", "three"]
    assert list(before) == [one]
