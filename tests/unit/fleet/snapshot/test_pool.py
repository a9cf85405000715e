"""Pools are counted as if each node and pod had been looked at again, however often some of them changed."""

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as some

from reconciler.fleet.fleet import Fleet
from reconciler.fleet.snapshot.pools import PoolTotals
from reconciler.model import names
from reconciler.model.cluster.metadata import Condition, Lease, LeaseSpec, Metadata, OwnerReference
from reconciler.model.cluster.node import Node, NodeTaint
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from reconciler.plan.sums import is_busy, is_empty, use_of
from tests import builders

POOLS = ("a", "b", "")
NODES = tuple(f"n{number}" for number in range(4))
LEAVING = "2026-11-16T08:00:00Z"


@some.composite
def nodes(draw: some.DrawFn, name: str) -> Node:
    labels = {
        names.POOL: draw(some.sampled_from(POOLS)),
        names.INSTANCE_TYPE: draw(some.sampled_from(["large", "small"])),
        names.ZONE: draw(some.sampled_from(["east", "west"])),
        names.HOSTNAME: name,
    }
    if draw(some.booleans()):
        labels[names.PROVISIONER] = draw(some.sampled_from(["one", "other"]))
    taint = draw(some.sampled_from([names.DISRUPTED, names.DRAINING, names.DELETION_TIME, "nvidia.com/gpu"]))
    leaving = draw(some.sampled_from(["", "", LEAVING]))
    ready = Condition("Ready", draw(some.sampled_from(["True", "True", "False"])))
    taints = (NodeTaint(taint, "NoSchedule"),)
    gpus = draw(some.sampled_from([0, 4, 8]))
    return builders.node(name, gpus=gpus, labels=labels, deletion_timestamp=leaving, taints=taints, conditions=(ready,))


@some.composite
def pods(draw: some.DrawFn, name: str) -> Pod:
    return builders.pod(
        name,
        gpus=draw(some.sampled_from([0, 1, 6])),
        namespace="default",
        owner_references=builders.controlled_by("DaemonSet", "agent") * draw(some.integers(0, 1)),
        phase=draw(some.sampled_from(["Pending", "Running", "Succeeded"])),
        node_name=draw(some.sampled_from(["", *NODES])),
    )


@some.composite
def leases(draw: some.DrawFn, name: str) -> Lease:
    owner = OwnerReference("Node", draw(some.sampled_from(NODES)), "u")
    holder = draw(some.sampled_from(["", "pod"]))
    return Lease(Metadata(name, names.LEASES_NAMESPACE, owner_references=(owner,)), LeaseSpec(holder_identity=holder))


@some.composite
def stories(draw: some.DrawFn) -> list[Observed]:
    """What is seen one time after the other: in each some objects are others, went or came."""
    seen = [Observed()]
    for _ in range(draw(some.integers(1, 6))):
        before = seen[-1]
        fields: dict[str, Any] = {}
        for field, make, most in (("nodes", nodes, 4), ("pods", pods, 6), ("leases", leases, 3)):
            known = {each.metadata.name: each for each in getattr(before, field)}
            for number in draw(some.sets(some.integers(0, most - 1), max_size=3)):
                name = f"n{number}"
                if known.pop(name, None) is None or draw(some.booleans()):
                    known[name] = draw(make(name))
            kept = tuple(known.values())
            fields[field] = getattr(before, field) if kept == getattr(before, field) else kept
        seen.append(Observed(**fields))
    return seen


def counted(pool: PoolTotals) -> object:
    return (
        (pool.unready, pool.busy, pool.gpus_used, pool.gpus_total),
        {gpus: count for gpus, count in pool.sorts.items() if count},
        {sort: count for sort, count in pool.staying.items() if count},
        {name: count for name, count in pool.labelled.items() if count},
        [each.name for each in pool.nodes],
        [each.name for each in pool.leaving_nodes],
        [each.name for each in pool.empty],
        {kind: (dict(it.shared), it.largest.name) for kind in ("large", "small") if (it := pool.alike(kind))},
    )


def walked(fleet: Fleet, name: str) -> object:
    """The same by a walk over everything."""
    there = [each for each in fleet.nodes_of(name) if not each.metadata.leaving]
    use, unready = use_of(fleet, name, 8), sum(not each.is_ready for each in there)
    busy = sum(is_busy(fleet, each) for each in there)
    going = {names.DELETION_TIME, names.DRAINING, names.DISRUPTED}
    taken = [each.name for each in there if any(taint.key in going for taint in each.spec.taints)]
    alive: dict[str, list[Node]] = {}
    for each in there:
        if each.gpus and each.is_ready:
            alive.setdefault(each.instance_type, []).append(each)
    return (
        (unready, busy, use.gpus_used, use.gpus_total),
        dict(Counter(each.gpus for each in there)),
        dict(Counter((each.instance_type, each.capacity_type) for each in there if each.name not in taken)),
        dict(Counter(each.metadata.labels.get(names.PROVISIONER, "") for each in there)),
        [each.name for each in there],
        taken,
        [each.name for each in there if is_empty(fleet, each)],
        {kind: (_shared(alike), max((each.gpus, each.name) for each in alike)[1]) for kind, alike in alive.items()},
    )


def _shared(alike: list[Node]) -> dict[str, str]:
    first, *others = [each.metadata.labels for each in alike]
    return {key: value for key, value in first.items() if all(other.get(key) == value for other in others)}


@settings(max_examples=40)
@given(stories(), some.sets(some.integers(0, 6)))
def test_pools_are_counted_as_by_a_walk_over_everything(story: list[Observed], asked: set[int]) -> None:
    fleet = Fleet(story[0])
    for number, seen in enumerate(story[1:]):
        fleet.advance(seen)
        if number in asked or seen is story[-1]:
            fresh = Fleet(seen)
            assert [counted(fleet.pool(name)) for name in POOLS] == [walked(fresh, name) for name in POOLS]
            assert fleet.zones == sorted({each.metadata.labels[names.ZONE] for each in seen.nodes})
            assert fleet.nodes_unsettled == fresh.nodes_unsettled


def test_a_list_of_a_pool_stays_as_it_was_handed_out() -> None:
    one, two = (builders.node(name, labels={names.POOL: "a"}) for name in ("one", "two"))
    fleet = Fleet(Observed(nodes=(one,)))
    before = fleet.pool("a").nodes
    fleet.advance(Observed(nodes=(one, two)))
    assert [each.name for each in before] == ["one"]
    assert [each.name for each in fleet.pool("a").nodes] == ["one", "two"]
