"""Volumes and nominations in any what-if: all ways to ask agree, everything comes back, and order does not matter."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as some

from reconciler.fleet.filters import PREDICATES
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.pod import Pod
from tests.unit.fleet.storage.stage import LOCAL, NODES, Case, observed_of, pod_of, take_off, where

NAMES = ("data", "logs", "more")
CLAIM = some.fixed_dictionaries(
    {"class": some.sampled_from(["local", "disks", "none"])},
    optional={
        "volume": some.sampled_from(["u", "v", "w"]),
        "size": some.sampled_from(["1Gi", "2Gi"]),
        "modes": some.sampled_from([["ReadWriteOncePod"], ["ReadWriteOnce"]]),
        "selected": some.sampled_from(["a1", "b1"]),
    },
)
VOLUME = some.fixed_dictionaries(
    {"class": some.sampled_from(["local", "disks"]), "size": some.sampled_from(["1Gi", "2Gi", "3Gi"])},
    optional={
        "zones": some.sampled_from([["a"], ["b"], ["a", "b"]]),
        "hosts": some.sampled_from([["a1"], ["b1"], ["a1", "a2"]]),
        "labels": some.sampled_from([{"topology.kubernetes.io/zone": "a"}, {"topology.kubernetes.io/zone": "a__b"}]),
        "for": some.sampled_from(NAMES),
    },
)
POD = some.fixed_dictionaries(
    {"claims": some.lists(some.sampled_from(NAMES), unique=True, max_size=3), "cpu": some.integers(0, 3)},
    optional={"priority": some.integers(0, 2)},
)
SEEN = some.tuples(POD, some.sampled_from(["at", "nominated", "name"]), some.sampled_from(["a1", "a2", "b1"]))
WORLD = some.fixed_dictionaries(
    {
        "claims": some.dictionaries(some.sampled_from(NAMES), CLAIM),
        "volumes": some.dictionaries(some.sampled_from(["u", "v", "w", "x"]), VOLUME),
        "pods": some.lists(SEEN, max_size=4),
        "limits": some.dictionaries(some.sampled_from(["a1", "b1"]), some.integers(0, 2)),
        "attached": some.dictionaries(
            some.sampled_from(["a1", "b1"]), some.lists(some.sampled_from("uvw"), max_size=2)
        ),
    }
)
STEPS = some.lists(
    some.tuples(some.sampled_from(["book", "empty", "away", "vacate", "fork"]), some.integers(0, 2), POD), max_size=6
)


def case_of(world: dict[str, Any]) -> Case:
    pods = [{**pod, "name": f"seen-{number}", **({how: node} if how != "name" else {})}
            for number, (pod, how, node) in enumerate(world["pods"])]  # fmt: skip
    return {**LOCAL, **world, "pods": pods}


def change(fleet: Snapshot, steps: list[tuple[str, int, Any]], pods: list[Pod]) -> None:
    """Each step, and the pods asked about in between; a fork is what the steps after it happen in."""
    for number, (step, which, told) in enumerate(steps):
        row = fleet.rows.row_of[sorted(NODES)[which]]
        if step == "fork":
            before = fleet.fingerprint()
            with fleet.fork():
                change(fleet, steps[number + 1 :], pods)
            assert fleet.fingerprint() == before
        elif step == "book" and fleet.rows.alive[row]:
            fleet.add(fleet.classes.of(pod_of({"pod": {**told, "name": f"booked-{number}"}})), row)
        elif step == "empty":
            take_off(fleet, sorted(NODES)[which])
        elif step == "away" and fleet.rows.alive[row]:
            fleet.take_away(row)
        elif step == "vacate" and fleet.rows.alive[row]:
            fleet.vacate(row)
        for pod in pods:
            where(fleet, pod, PREDICATES)


@given(WORLD, STEPS, some.lists(POD, max_size=2))
def test_in_any_what_if_all_ways_to_ask_agree_and_everything_comes_back(world: Any, steps: Any, asks: Any) -> None:
    fleet = Snapshot(observed_of(case_of(world)))
    pods = [pod_of({"pod": {**each, "name": f"asked-{number}"}}) for number, each in enumerate(asks)]
    first = [where(fleet, pod, PREDICATES) for pod in pods]
    before = fleet.fingerprint()
    with fleet.fork():
        change(fleet, steps, pods)
    assert fleet.fingerprint() == before
    assert [where(fleet, pod, PREDICATES) for pod in pods] == first


@given(WORLD, WORLD, some.lists(POD, min_size=1, max_size=2))
def test_a_what_if_that_advanced_answers_as_a_new_one(one: Any, other: Any, asks: Any) -> None:
    pods = [pod_of({"pod": {**each, "name": f"asked-{number}"}}) for number, each in enumerate(asks)]
    advanced = Snapshot(observed_of(case_of(one)))
    for pod in pods:
        where(advanced, pod, PREDICATES)
    observed = observed_of(case_of(other))
    advanced.advance(observed)
    rebuilt = Snapshot(observed)
    assert [where(advanced, each, PREDICATES) for each in pods] == [where(rebuilt, each, PREDICATES) for each in pods]


@given(WORLD, some.randoms(use_true_random=False), some.lists(POD, min_size=1, max_size=2))
def test_the_order_in_which_things_were_seen_does_not_matter(world: Any, order: Any, asks: Any) -> None:
    observed = observed_of(case_of(world))
    fields = ("nodes", "pods", "volume_claims", "volumes", "storage_classes", "csi_nodes", "attachments")
    shuffled = {each: tuple(order.sample(getattr(observed, each), len(getattr(observed, each)))) for each in fields}
    one, other = Snapshot(observed), Snapshot(msgspec.structs.replace(observed, **shuffled))
    pods = [pod_of({"pod": {**each, "name": f"asked-{number}"}}) for number, each in enumerate(asks)]
    assert [where(one, each, PREDICATES) for each in pods] == [where(other, each, PREDICATES) for each in pods]
