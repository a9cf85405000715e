"""GPUs that pods ask for by requests and by GpuClaims, and GPUs that are lent: one sum for all who look at a node."""

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as some

from reconciler.fleet.fleet import Fleet
from reconciler.fleet.questions import fits as why_not
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model import names
from reconciler.model.cluster.metadata import Annotations, Lease, LeaseSpec, Metadata, OwnerReference
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.unstructured import Unstructured, UnstructuredMetadata
from reconciler.model.instant import Instant
from reconciler.plan.sums import gpus_in_use
from reconciler.simulate.objects import ObjectWrite
from reconciler.simulate.results.totals import PoolTotalsTracker
from tests import builders

GPUS = 8
NODES = ("n0", "n1", "n2")
CLAIMS = ("one", "two", "three")
MADE = "2026-11-02T08:00:00Z"


def node(name: str) -> Node:
    has = {"cpu": "96", "memory": "1000Gi", "pods": "110"}
    return builders.node(name, gpus=GPUS, has=has, labels={names.POOL: "a"})


def pod(name: str, gpus: int, claim: str, on: str) -> Pod:
    return builders.pod(
        name,
        gpus=gpus or None,
        asks={"cpu": "1"},
        namespace="team",
        annotations=Annotations(claim=claim),
        creation_timestamp=MADE,
        node_name=on,
    )


def claim(name: str, count: Any) -> Unstructured:
    spec = {"spec": {"devices": {"count": count}}}
    return Unstructured("gpu.scheduling/v1", "GpuClaim", UnstructuredMetadata(name, "team"), spec)


def lease(on: str, number: int, holder: str = "uid-of-a-pod") -> Lease:
    owner = OwnerReference(kind="Node", name=on, uid=f"uid-{on}")
    return Lease(Metadata(f"gpu-{on}-{number}", names.LEASES_NAMESPACE, owner_references=(owner,)), LeaseSpec(holder))


PODS = some.lists(
    some.tuples(some.integers(0, 4), some.sampled_from(("", *CLAIMS)), some.sampled_from(("", *NODES))), max_size=8
)
COUNTS = some.dictionaries(some.sampled_from(CLAIMS), some.integers(-1, 9) | some.sampled_from(["4", True, None]))
LENT = some.dictionaries(some.sampled_from(NODES), some.integers(0, 9))


@some.composite
def clusters(draw: some.DrawFn) -> Observed:
    there = draw(some.sets(some.sampled_from(NODES), min_size=1))
    pods = [pod(f"p{at}", *each) for at, each in enumerate(draw(PODS))]
    lent = [lease(on, number) for on, gpus in sorted(draw(LENT).items()) for number in range(gpus)]
    return Observed(
        nodes=tuple(map(node, sorted(there))),
        pods=tuple(pods),
        policies=tuple(claim(*each) for each in sorted(draw(COUNTS).items())),
        leases=(*lent, lease("n0", 99, holder="")),
    )


def asked_on(observed: Observed, name: str) -> int:
    """The rule, by hand."""
    counts = {each.name: each.spec["devices"]["count"] for each in observed.policies}
    readable = {name: count for name, count in counts.items() if type(count) is int}
    there = (each for each in observed.pods if each.node == name)
    return sum(max(each.gpus, readable.get(each.metadata.annotations.claim, 0)) for each in there)


def lent_on(observed: Observed, name: str) -> int:
    held = (each for each in observed.leases if each.spec.holder_identity)
    return sum(each.metadata.owner_references[0].name == name for each in held)


@given(clusters())
def test_on_each_node_the_larger_of_what_is_asked_for_and_what_is_lent_is_in_use(observed: Observed) -> None:
    fleet = Fleet(observed)
    column, rows = fleet.snapshot.classes.column(names.NVIDIA_GPU), fleet.snapshot.rows.row_of
    used = {each.name: max(asked_on(observed, each.name), lent_on(observed, each.name)) for each in observed.nodes}
    for each in observed.nodes:
        assert gpus_in_use(fleet, [each]) == min(GPUS, used[each.name])
        asked, lent = asked_on(observed, each.name), min(GPUS, lent_on(observed, each.name))
        assert int(fleet.snapshot.stock.free[rows[each.name], column]) == GPUS - max(asked, lent)
    assert fleet.pool("a").gpus_used == sum(min(GPUS, each) for each in used.values())


@settings(max_examples=150)
@given(some.lists(clusters(), min_size=2, max_size=5))
def test_what_is_followed_from_one_sighting_to_the_next_is_what_is_seen_at_once(sightings: list[Observed]) -> None:
    moving = Fleet(sightings[0])
    assert moving.snapshot.fingerprint()
    assert moving.pool("a").gpus_total
    for observed in sightings[1:]:
        moving.advance(observed)
        afresh = Fleet(observed)
        assert moving.snapshot.fingerprint() == afresh.snapshot.fingerprint()
        assert moving.pool("a").gpus_used == afresh.pool("a").gpus_used


@given(clusters())
def test_all_pods_that_stay_ask_for_as_many_as_their_claims_say_from_then_on(observed: Observed) -> None:
    """Pods are the same objects as before: only claims and Leases are others."""
    moving = Fleet(msgspec.structs.replace(observed, policies=(claim("one", 3),), leases=(lease("n1", 0),)))
    assert moving.snapshot.fingerprint()
    assert moving.pool("a").gpus_total
    moving.advance(observed)
    afresh = Fleet(observed)
    assert moving.snapshot.fingerprint() == afresh.snapshot.fingerprint()
    assert moving.pool("a").gpus_used == afresh.pool("a").gpus_used


@given(clusters())
def test_gpus_are_lent_in_a_cluster_that_had_no_gpus_at_first(observed: Observed) -> None:
    moving = Fleet(Observed(nodes=(builders.node("cpu", has={"cpu": "8", "memory": "32Gi", "pods": "110"}),)))
    assert moving.snapshot.fingerprint()
    moving.advance(observed)
    afresh = Fleet(observed).snapshot
    for name in (each.name for each in observed.nodes):
        free = [
            snapshot.stock.free_at(snapshot.rows.row_of[name], snapshot.classes.column(names.NVIDIA_GPU))
            for snapshot in (moving.snapshot, afresh)
        ]
        assert free[0] == free[1]


@given(clusters(), some.integers(0, 8), some.sampled_from(CLAIMS))
def test_what_a_fork_books_and_takes_back_leaves_what_is_lent(observed: Observed, gpus: int, of: str) -> None:
    what_if = Snapshot(observed)
    before = what_if.fingerprint()
    with what_if.fork():
        row = what_if.rows.row_of[observed.nodes[0].name]
        what_if.add(what_if.classes.of(pod("more", gpus, of, "")), row)
        what_if.vacate(row)
    assert what_if.fingerprint() == before


def test_a_pod_fits_where_the_gpus_of_its_claim_are_free() -> None:
    observed = Observed(nodes=(node("n0"),), pods=(pod("p", 6, "", "n0"),), policies=(claim("one", 4), claim("two", 2)))
    what_if = Snapshot(observed)
    assert why_not(what_if, pod("new", 1, "one", ""), "n0")
    assert not why_not(what_if, pod("new", 1, "two", ""), "n0")


def test_a_count_that_no_node_has_breaks_nothing() -> None:
    fleet = Fleet(Observed(nodes=(node("n0"),), pods=(pod("p", 0, "one", "n0"),), policies=(claim("one", 10**30),)))
    assert gpus_in_use(fleet, [node("n0")]) == GPUS
    assert why_not(fleet.snapshot, pod("new", 1, "", ""), "n0")


def test_figures_of_the_simulator_follow_claims_too() -> None:
    metadata = {"name": "p", "namespace": "team", "annotations": {names.CLAIM: "one"}}
    told = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"nodeName": "n0"}}
    of, counts = ("GpuClaim", "team", "one"), [{"spec": {"devices": {"count": count}}} for count in (4, 2)]
    where, now = PoolTotalsTracker(), Instant(0)
    where.note(ObjectWrite(("Pod", "team", "p"), None, told), now)
    seen = [where.gpus_on("n0")]
    for before, after in ((None, counts[0]), (counts[0], counts[1]), (counts[1], None)):
        where.note(ObjectWrite(of, before, after), now)
        seen.append(where.gpus_on("n0"))
    where.note(ObjectWrite(("Pod", "team", "p"), told, None), now)
    assert [*seen, where.gpus_on("n0")] == [0, 4, 2, 0, 0]


def test_leases_on_the_first_node_with_gpus_are_withheld_as_in_a_new_snapshot() -> None:
    """No node had GPUs when the snapshot was made."""
    plain = builders.node("cpu", has={"cpu": "96", "memory": "1000Gi", "pods": "110"})
    before = Observed(nodes=(plain,))
    after = Observed(nodes=(plain, node("n0")), leases=tuple(lease("n0", number) for number in range(3)))
    fleet = Snapshot(before)
    fleet.advance(after)
    column = fleet.classes.column(names.NVIDIA_GPU)
    assert int(fleet.stock.free_of(column)[fleet.rows.row_of["n0"]]) == GPUS - 3
    fleet.advance(msgspec.structs.replace(after, leases=()))
    assert int(fleet.stock.free_of(column)[fleet.rows.row_of["n0"]]) == GPUS
