"""The pods of each node: every pod is counted by a profile that is true of the pod, whatever was observed before."""

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from reconciler.fleet.amounts import GpuRequests
from reconciler.fleet.fleet import Fleet
from reconciler.fleet.occupancy import Occupancy
from reconciler.fleet.pod_classes import Classes
from reconciler.fleet.snapshot.diff import change_between
from reconciler.model import names
from reconciler.model.cluster.metadata import Annotations, Condition
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from tests import builders

NODES = ("n0", "n1", "n2")  # n2 does not exist
READY = (Condition("Initialized", "True"), Condition("Ready", "True"))
OPTIONAL: dict[str, some.SearchStrategy[Any]] = {
    "annotations": some.sampled_from(
        [
            Annotations(),
            Annotations(safe_to_evict="true"),
            Annotations(safe_to_evict="on-completion"),
            Annotations(do_not_disrupt="true"),
            Annotations(daemonset_pod="true"),
            Annotations(mirror_pod="m"),
            Annotations(checkpointed_at="2026-11-16T08:00:00Z"),
            Annotations(evict_at="2026-11-16T08:00:00Z"),
            Annotations(claim="c"),
        ]
    ),
    "owner_references": some.sampled_from(
        [(), builders.controlled_by("ReplicaSet", "r", "apps/v1"), builders.controlled_by("DaemonSet", "r")]
    ),
    "conditions": some.sampled_from([READY, READY[:1], (Condition("Ready", "False"),)]),
    "phase": some.sampled_from(["Pending", "Running", "Unknown", "Succeeded", "Failed"]),
    "labels": some.sampled_from([{"app": "a"}, {names.COMPONENT: "smart-pod"}]),
    "deletion_timestamp": some.just("2026-11-16T08:00:00Z"),
    "nominated_node_name": some.just("n1"),
    "node_name": some.just(""),
    "gpus": some.sampled_from([0, 2]),
    "priority": some.just(7),
}


OWNER = builders.controlled_by("ReplicaSet", "r")


@some.composite
def pods(draw: some.DrawFn, name: str) -> Pod:
    """Mostly alike: pods of one owner differ in few fields."""
    fields: dict[str, Any] = {"namespace": "d", "owner_references": OWNER, "node_name": draw(some.sampled_from(NODES))}
    for key in sorted(draw(some.sets(some.sampled_from(sorted(OPTIONAL)), max_size=2))):
        fields[key] = draw(OPTIONAL[key])
    return builders.pod(name, **fields)


@some.composite
def stories(draw: some.DrawFn) -> list[Observed]:
    """In each observation, some pods are added, replaced or removed."""
    known: dict[str, Pod] = {}
    story = []
    for _ in range(draw(some.integers(1, 4))):
        for number in draw(some.lists(some.integers(0, 7), max_size=8)):
            if known.pop(f"p{number}", None) is None or draw(some.booleans()):
                known[f"p{number}"] = draw(pods(f"p{number}"))
        there = draw(some.permutations(sorted(known.values(), key=lambda each: each.name)))
        story.append(Observed(nodes=tuple(map(builders.node, NODES[:2])), pods=tuple(there)))
    return story


def counts_by_hand(observed: Observed) -> object:
    bound = [each for each in observed.pods if each.node and not each.is_finished]
    waiting = [each for each in observed.pods if not each.node and not each.is_finished]
    return (
        {name: [each for each in sorted_by_name(bound) if each.node == name] for name in NODES},
        {name: [each for each in sorted_by_name(observed.pods) if each.node == name] for name in NODES},
        Counter({name: sum(each.gpus for each in bound if each.node == name) for name in NODES}),
        Counter(each.node for each in bound if not each.stays_with_its_node),
        (sorted_by_name(waiting), [each for each in sorted_by_name(waiting) if each.status.nominated_node_name]),
        [each for each in sorted_by_name(observed.pods) if names.COMPONENT in each.metadata.labels],
        [each for each in sorted_by_name(bound) if each.metadata.annotations.evict_at],
    )


def counts_of(occupancy: Occupancy) -> object:
    return (
        {name: list(occupancy.on(name).pods) for name in NODES},
        {name: list(occupancy.on(name).all) for name in NODES},
        occupancy.gpus,
        occupancy.counting,
        (occupancy.waiting, occupancy.nominated),
        occupancy.smart,
        occupancy.notified_pods,
    )


def sorted_by_name(pods: "list[Pod] | tuple[Pod, ...]") -> list[Pod]:
    return sorted(pods, key=lambda each: each.name)


@settings(max_examples=150)
@given(stories())
def test_pods_are_counted_as_by_a_walk_over_everything(story: list[Observed]) -> None:
    occupancy = Occupancy(story[0])
    for before, observed in zip([story[0], *story], story, strict=False):
        occupancy.advance(observed, change_between(before, observed))
        assert counts_of(occupancy) == counts_by_hand(observed) == counts_of(Occupancy(observed))


@settings(max_examples=150)
@given(stories())
def test_a_profile_is_true_of_each_of_its_pods(story: list[Observed]) -> None:
    occupancy = Occupancy(story[0])
    for before, observed in zip([story[0], *story], story, strict=False):
        occupancy.advance(observed, change_between(before, observed))
        for there in occupancy.by_node.values():
            assert Counter(there.profiles) == there.counts
            for pod, profile in zip(there.booked, there.profiles, strict=True):
                alone = Classes(GpuRequests()).book(pod)
                assert profile.pod_class.text == alone.pod_class.text
                assert profile.is_ready == pod.is_ready
                assert profile.pod.status.phase == pod.status.phase
                assert profile.pod.metadata.annotations == pod.metadata.annotations
                assert profile.pod.metadata.owner_references == pod.metadata.owner_references


NODES_OF_POOL = tuple(builders.node(name, gpus=8, labels={names.POOL: "a"}) for name in NODES)


def observed_jobs(turn: int) -> Observed:
    """Each pod is of a class of its own; at every third turn, there are none."""
    words = random.Random(turn)
    there = [
        builders.pod(f"p{number}", gpus=1, labels={"job": f"{turn}-{number}"}, node_name=words.choice(NODES))
        for number in range(300 if turn % 3 else 0)
    ]
    return Observed(nodes=NODES_OF_POOL, pods=tuple(there))


@pytest.mark.parametrize("with_snapshot", [False, True])
def test_classes_of_removed_pods_are_forgotten(with_snapshot: bool) -> None:
    fleet, most = Fleet(Observed(nodes=NODES_OF_POOL)), 0
    for turn in range(20):
        fleet.advance(observed_jobs(turn))
        assert not with_snapshot or not fleet.snapshot.waiting
        most = max(most, len(fleet.occupancy.classes.all))
    assert most < 2_000


@pytest.mark.parametrize("with_snapshot", [False, True])
def test_totals_of_pools_stay_right_when_classes_are_forgotten(with_snapshot: bool) -> None:
    fleet = Fleet(Observed(nodes=NODES_OF_POOL))
    for turn in range(20):
        fleet.advance(observed_jobs(turn))
        assert not with_snapshot or not fleet.snapshot.waiting
        assert fleet.pool("a").busy == (3 if turn % 3 else 0)
