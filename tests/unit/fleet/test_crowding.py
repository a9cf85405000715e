"""A what-if remembers what is there, and of what is gone no more than a few times that."""

import tracemalloc
from itertools import pairwise

import msgspec

from reconciler.fleet.filters.chain import FilterChain
from reconciler.fleet.pod_classes import Classes
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.metadata import OwnerReference
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from tests.unit.fleet.stage import Words, node, pod

_NAMES = [f"n{number:03}" for number in range(100)]
_NODES = tuple(node(name, {}) for name in _NAMES)


def fleet() -> Snapshot:
    return Snapshot(Observed(nodes=_NODES, cluster_uid="c"))


def choosy(number: int, on: str = "") -> Pod:
    """Of a class of its own, which names a hundred nodes, and a label that nobody else asks about."""
    terms = [{"matchExpressions": [but(f"for-{number}", "DoesNotExist"), but("host", "NotIn", _NAMES)]}]
    return pod(f"p{number}", {"affinity": terms, "nodeName": on})


def but(key: str, operator: str, values: list[str] | None = None) -> Words:
    return {"key": key, "operator": operator, "values": values or []}


def see(what_if: Snapshot, *pods: Pod) -> Classes:
    """As it is seen next, and asked about."""
    what_if.advance(msgspec.structs.replace(what_if.observed, pods=pods))
    for each in what_if.waiting:
        what_if.part(FilterChain).mask(what_if.classes.of(each))
    return what_if.classes


def test_pods_that_come_and_go_leave_little_though_each_is_of_a_class_of_its_own() -> None:
    what_if = fleet()
    held = [len(see(what_if, choosy(number, on=number % 2 * "n001")).all) for number in range(1_000)]
    assert max(held) < 400
    assert sum(after < before for before, after in pairwise(held)) < 10, "nor is it built anew often"


def test_pods_that_are_there_are_not_forgotten_however_many_classes_they_are_of() -> None:
    what_if, pods = fleet(), [choosy(number, on=number % 2 * "n001") for number in range(1_500)]
    first = see(what_if, *pods[:500])
    assert see(what_if, *pods) is first
    assert len(first.all) == len(pods)


def test_taints_that_nodes_bore_are_forgotten_though_each_was_another() -> None:
    what_if, held = fleet(), []
    for number in range(2_000):
        marked = node("n000", {"taints": [{"key": "time", "value": str(number), "effect": "NoSchedule"}]})
        what_if.advance(msgspec.structs.replace(what_if.observed, nodes=(marked, *_NODES[1:])))
        held.append(len(what_if.rows.taint_groups))
    assert max(held) < 1_000


def test_owners_that_are_gone_are_forgotten_though_all_their_pods_were_alike() -> None:
    what_if, peaks = fleet(), []
    tracemalloc.start()
    try:
        for first in (0, 1_200, 2_400):
            tracemalloc.reset_peak()
            for number in range(first, first + 1_200):
                what_if.advance(msgspec.structs.replace(what_if.observed, pods=(of_a_job(number),)))
            peaks.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()
    assert peaks[2] < 1.1 * peaks[0]


def of_a_job(number: int) -> Pod:
    found = pod(f"p{number}", {"nodeName": "n001", "cpu": "1"})
    owner = OwnerReference("Job", f"j{number}", uid=f"uid-{number}", controller=True)
    return msgspec.structs.replace(found, metadata=msgspec.structs.replace(found.metadata, owner_references=(owner,)))
