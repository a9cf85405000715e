"""Which nodes the desk offers to a preemption, and when nobody need be preempted."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.cluster.metadata import Condition
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from tests import builders
from tests.unit.protocol.desk_stage import TEAM, Cluster, board_of, claim, lease, node, pod, pool, report
from tests.unit.protocol.test_desk import CLAIMS, NODES, POOLS, operate

KEY = TEAM, "c0"
OPERATIONS = ("node", "report", "claim", "pod", "lease", "lease", "other", "other", "drop", "pools", "reserve", "fail")


def without_claim(name: str, node_name: str, gpus: int) -> Pod:
    return builders.pod(name, namespace=TEAM, gpus=gpus, node_name=node_name)


def full(*holders: str, **of_claim: Any) -> Cluster:
    """A node with two islands of two GPUs, each held by one of the pods, and a claim of two GPUs."""
    cluster = Cluster().put(in_state("True"), report("n0", board_of("n0")), claim("c0", **{"count": 2, **of_claim}))
    for device, holder in enumerate(holders):
        cluster.put(pod(holder, "held", "n0"), lease("n0", device, f"uid-{holder}"))
    return cluster


def in_state(ready: str, **spec: Any) -> Node:
    return node("n0", conditions=(Condition("Ready", ready),), **spec)


# --- Which nodes are offered.


def test_victims_must_free_one_island_if_the_claim_requires_one() -> None:
    cluster = full("a", "b", "c", "d", policy="requireContiguous")
    offered = [
        victims
        for victims in (["a", "b"], ["c", "d"], ["a", "c"], ["b", "d"], ["a"], ["b", "c", "d"])
        if cluster.desk.serves_without(KEY, "n0", [f"uid-{each}" for each in victims])
    ]
    assert offered == [["a", "b"], ["c", "d"], ["b", "c", "d"]]


@pytest.mark.parametrize(
    "pools", [(pool("a100", mode="Observe"),), (pool("a100", suspend=True),), (pool("l4"),)], ids=str
)
def test_nobody_is_preempted_on_a_pool_that_lends_no_gpus(pools: Any) -> None:
    cluster = full("a", "b", "c", "d")
    assert cluster.desk.serves_without(KEY, "n0", ["uid-a", "uid-b"])
    cluster.desk.set_pools(pools)
    assert not cluster.desk.serves_without(KEY, "n0", ["uid-a", "uid-b"])


def test_nobody_is_preempted_on_a_node_whose_gpus_are_not_reported() -> None:
    cluster = full("a", "b", "c", "d")
    cluster.drop(cluster.reports["n0"])
    assert not cluster.desk.serves_without(KEY, "n0", ["uid-a", "uid-b", "uid-c", "uid-d"])


def test_a_victim_without_a_claim_frees_its_gpus_too() -> None:
    cluster = full().put(without_claim("plain", "n0", 3))
    assert not cluster.desk.serves_without(KEY, "n0", [])
    assert cluster.desk.serves_without(KEY, "n0", ["uid-plain"])


def test_a_victim_whose_binding_is_under_way_frees_its_gpus_too() -> None:
    cluster = full().put(claim("four", count=4), pod("late", "four"))
    cluster.desk.reserve(cluster.pods["late"], "n0")
    assert not cluster.desk.serves_without(KEY, "n0", [])
    assert cluster.desk.serves_without(KEY, "n0", ["uid-late"])


@settings(max_examples=150)
@given(st.integers(0, 2**32))
def test_a_node_is_offered_if_it_serves_the_claim_once_the_victims_are_gone(seed: int) -> None:
    chance = random.Random(seed)
    cluster = Cluster(*POOLS)
    for name in NODES[:2]:
        cluster.put(node(name), report(name, board_of(name)))
    cluster.put(claim("c0"), claim("c1", count=2))
    for _ in range(40):
        operation = chance.choice(OPERATIONS)
        if operation == "other":
            cluster.put(without_claim(f"other-{chance.randrange(3)}", chance.choice(NODES), chance.randrange(4)))
        else:
            operate(cluster, chance, operation)
    victims = [each for each in cluster.pods.values() if chance.random() < 0.5]
    uids = {each.metadata.uid for each in victims}
    offered = {(name, at): cluster.desk.serves_without((TEAM, name), at, uids) for name in CLAIMS for at in NODES}
    for victim in victims:
        cluster.drop(victim)
    for held in [each for each in cluster.leases.values() if each.spec.holder_identity in uids]:
        cluster.drop(held)
    for (name, at), is_offered in offered.items():
        answer = cluster.desk.answers((TEAM, name), [at])[at]
        assert is_offered is (answer.obstacle is None), (name, at, answer)


# --- Leases of ended pods: nobody else need be preempted.

ENDS: dict[str, Callable[[Cluster], Any]] = {
    "the pod is gone": lambda it: it.drop(it.pods["a"]),
    "the pod has succeeded": lambda it: it.put(pod("a", "held", "n0", "Succeeded")),
    "the pod has failed": lambda it: it.put(pod("a", "held", "n0", "Failed")),
}


@pytest.mark.parametrize("name", ENDS)
def test_a_release_is_awaited_and_for_a_node_that_was_refused_the_next_attempt(name: str) -> None:
    cluster = full("a", "a", "b", "b")
    assert not cluster.desk.awaits_release(KEY, {"n0"})
    ENDS[name](cluster)
    assert cluster.desk.awaits_release(KEY, {"n0"})
    for device in (0, 1):
        cluster.drop(cluster.leases[f"gpu-n0-{device}"])
    assert cluster.desk.awaits_release(KEY, {"n0"}), "the node was refused a moment ago, and serves the claim now"


def test_victims_that_are_leaving_count_on_the_nominated_node_only() -> None:
    cluster = full("a", "a", "b", "b")
    cluster.put(pod("a", "held", "n0", deletion_timestamp="2026-01-01T00:00:00Z"))
    assert not cluster.desk.awaits_release(KEY, {"n0"})
    assert not cluster.desk.awaits_release(KEY, set(), "n9")
    assert cluster.desk.awaits_release(KEY, set(), "n0")


NO_RELEASE: dict[str, Callable[[Cluster], Any]] = {
    "its GPUs are on two islands": lambda it: it.put(
        claim("c0", count=2, policy="requireContiguous"), lease("n0", 1, "uid-b"), lease("n0", 2, "uid-a")
    ),
    "they are too few": lambda it: it.put(claim("c0", count=3)),
    "the claim does not exist": lambda it: it.drop(it.claims["c0"]),
    "the node is not ready": lambda it: it.put(in_state("Unknown")),
    "the node is cordoned": lambda it: it.put(in_state("True", unschedulable=True)),
    "the node is gone": lambda it: it.drop(it.nodes["n0"]),
    "the pool only observes": lambda it: it.desk.set_pools([pool("a100", mode="Observe")]),
    "others wrote the Leases": lambda it: it.put(*(lease("n0", each, "uid-a", title="") for each in (0, 1))),
}


@pytest.mark.parametrize("name", NO_RELEASE)
def test_no_release_is_awaited_that_would_not_help(name: str) -> None:
    cluster = full("a", "a", "b", "b")
    cluster.drop(cluster.pods["a"])
    for refused, nominated in ((set[str](), "n0"), ({"n0"}, "")):
        assert cluster.desk.awaits_release(KEY, refused, nominated)
    assert not cluster.desk.awaits_release(KEY, {"n1"}), "kube-scheduler excludes the node for other reasons"
    NO_RELEASE[name](cluster)
    assert not cluster.desk.awaits_release(KEY, {"n0"}, "n0")
