"""The desk: no GPU is reserved twice, reservations end, and answers follow from the observed objects alone."""

import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.fleet.amounts import read_gpu_requests
from reconciler.fleet.devices.board import read_board
from reconciler.fleet.devices.choice import Chosen, choose
from reconciler.fleet.devices.ledger import DeviceLedger
from reconciler.fleet.gpu_claims import claimed_devices, serving_pools
from reconciler.fleet.obstacles import (
    GpuClaimUnusable,
    GpusOfNodeUnreported,
    NodeAbsent,
    NoIslandOfFreeGpus,
    NotInPoolOfClaim,
    PoolOfNodeObserved,
    TooFewFreeGpus,
)
from reconciler.model import names
from reconciler.model.plan.decision import Obstacle
from reconciler.protocol.desk import Desk, Reservation
from tests.unit.protocol.desk_stage import TEAM, Cluster, board_of, claim, lease, node, pod, pool, report


def ready(*counts: int, nodes: int = 1) -> Cluster:
    """Nodes with two islands of two GPUs, and for each count a claim and a pod that waits."""
    cluster = Cluster()
    for number in range(nodes):
        cluster.put(node(f"n{number}"), report(f"n{number}", board_of(f"n{number}")))
    for number, count in enumerate(counts):
        cluster.put(claim(f"c{number}", count=count), pod(f"p{number}", f"c{number}"))
    return cluster


def reserved(cluster: Cluster, pod_name: str, node_name: str = "n0") -> Reservation:
    found = cluster.desk.reserve(cluster.pods[pod_name], node_name)
    assert isinstance(found, Reservation), found
    return found


def ids(reservation: Reservation) -> list[int]:
    return [each.device for each in reservation.bind.leases]


def obstacle(cluster: Cluster, claim_name: str, node_name: str = "n0") -> Obstacle | None:
    return cluster.desk.answers((TEAM, claim_name), [node_name])[node_name].obstacle


# --- What the desk answers about one node.


def unreported(cluster: Cluster) -> Cluster:
    return cluster.drop(cluster.reports["n0"])


def observe_only(cluster: Cluster) -> None:
    cluster.desk.set_pools([pool("a100", mode="Observe")])


def lend(*devices: int) -> Callable[[Cluster], Cluster]:
    return lambda cluster: cluster.put(*(lease("n0", each, "uid-other") for each in devices))


def replace_claim(**fields: Any) -> Callable[[Cluster], Cluster]:
    return lambda cluster: cluster.put(claim("c0", **fields))


ANSWERS: dict[str, tuple[Callable[[Cluster], Any], type[Obstacle] | None]] = {
    "a node with free GPUs serves the claim": (lambda _: None, None),
    "a claim that does not exist is served nowhere": (lambda it: it.drop(it.claims["c0"]), GpuClaimUnusable),
    "a suspended claim is served nowhere": (replace_claim(suspend=True), GpuClaimUnusable),
    "a claim that cannot be read is served nowhere": (replace_claim(count="two"), GpuClaimUnusable),
    "a node that is gone serves nothing": (lambda it: it.drop(it.nodes["n0"]), NodeAbsent),
    "a node of another pool serves nothing": (lambda it: it.put(node("n0", "l4")), NotInPoolOfClaim),
    "a pool that is only observed serves nothing": (observe_only, PoolOfNodeObserved),
    "a suspended pool serves nothing": (lambda it: it.desk.set_pools([pool("a100", suspend=True)]), PoolOfNodeObserved),
    "without a report of its agent a node serves nothing": (unreported, GpusOfNodeUnreported),
    "GPUs that are lent are not free": (lend(0, 1, 2), TooFewFreeGpus),
    "two free GPUs of two islands serve a claim of any two": (lend(0, 2), None),
    "another model serves nothing": (replace_claim(count=2, model="h100"), NotInPoolOfClaim),
    "two free GPUs of two islands do not serve a claim of one island": (
        lambda it: (lend(0, 2)(it), replace_claim(count=2, policy="requireContiguous")(it)),
        NoIslandOfFreeGpus,
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_answers(name: str) -> None:
    change, expected = ANSWERS[name]
    cluster = ready(2)
    assert obstacle(cluster, "c0") is None
    change(cluster)
    found = obstacle(cluster, "c0")
    assert (type(found) if found is not None else None) is expected
    result = cluster.desk.reserve(cluster.pods["p0"], "n0")
    assert isinstance(result, Reservation) is (expected is None)


def test_on_a_pool_with_the_device_plugin_reports_are_not_needed_and_no_uuid_is_told() -> None:
    cluster = Cluster(pool("a100", allocation="plugin"))
    cluster.put(node("n0"), claim("c0", count=2), pod("p0", "c0"))
    bind = reserved(cluster, "p0").bind
    assert bind.annotations == ((names.ALLOCATED, "n0:0,1"),)
    assert [each.uuid for each in bind.leases] == ["", ""]


def test_a_binding_has_the_leases_and_annotations_of_the_gpus_that_were_chosen() -> None:
    bind = reserved(ready(2), "p0").bind
    assert bind.annotations == ((names.ALLOCATED, "n0:0,1"), (names.DEVICES, "GPU-n0-0,GPU-n0-1"))
    assert [(each.name, each.device, each.uuid) for each in bind.leases] == [
        ("gpu-n0-0", 0, "GPU-n0-0"),
        ("gpu-n0-1", 1, "GPU-n0-1"),
    ]


def test_before_everything_was_read_the_desk_is_not_ready() -> None:
    desk = Desk()
    assert "policies" in desk.why_unready
    desk.set_pools([])
    assert "cluster" in desk.why_unready
    desk.is_read = True
    assert desk.why_unready == ""


def test_a_question_reserves_nothing_and_a_reservation_counts_in_the_next_answer() -> None:
    cluster = ready(4, 1)
    for _ in range(3):
        assert obstacle(cluster, "c0") is None
    reserved(cluster, "p0")
    assert isinstance(obstacle(cluster, "c1"), TooFewFreeGpus)
    assert isinstance(cluster.desk.reserve(cluster.pods["p1"], "n0"), TooFewFreeGpus)


def test_a_binding_that_is_tried_again_gets_the_same_gpus() -> None:
    cluster = ready(2, 1)
    first = reserved(cluster, "p0")
    reserved(cluster, "p1")
    assert reserved(cluster, "p0") == first
    assert len(cluster.desk.reservations) == 2


def test_after_a_crash_a_pod_gets_the_gpus_whose_leases_it_holds() -> None:
    cluster = ready(2)
    cluster.put(lease("n0", 1, "uid-p0"), lease("n0", 3, "uid-p0"))
    assert ids(reserved(cluster, "p0")) == [1, 3]


@pytest.mark.parametrize("pools", [(), (pool("l4"),), (pool("a100", mode="Observe"),)])
def test_a_pod_that_holds_leases_is_bound_only_on_pools_that_are_acted_on(pools: Any) -> None:
    cluster = ready(1)
    cluster.put(lease("n0", 1, "uid-p0"))
    cluster.desk.set_pools(pools)
    assert isinstance(cluster.desk.reserve(cluster.pods["p0"], "n0"), NotInPoolOfClaim | PoolOfNodeObserved)


def test_victims_of_a_preemption_count_as_gone() -> None:
    cluster = ready(2)
    for device in range(4):
        cluster.put(lease("n0", device, f"uid-v{device // 2}"))
    key = TEAM, "c0"
    assert not cluster.desk.serves_without(key, "n0", [])
    assert not cluster.desk.serves_without(key, "n0", ["uid-other"])
    assert cluster.desk.serves_without(key, "n0", ["uid-v0"])
    assert not cluster.desk.serves_without(key, "n9", ["uid-v0"])


# --- Reservations end.

ENDS: dict[str, Callable[[Cluster], Any]] = {
    "the Binding failed": lambda it: it.desk.end_reservation(it.desk.reservations[0]),
    "the pod is bound": lambda it: it.put(pod("p0", "c0", "n9")),
    "the pod is finished": lambda it: it.put(pod("p0", "c0", phase="Failed")),
    "the pod is gone": lambda it: it.drop(it.pods["p0"]),
    "its Leases are released": lambda it: (it.put(lease("n0", 0, "uid-p0")), it.drop(it.leases["gpu-n0-0"])),
}


@pytest.mark.parametrize("name", ENDS)
def test_a_reservation_ends(name: str) -> None:
    cluster = ready(4, 4)
    reserved(cluster, "p0")
    assert isinstance(obstacle(cluster, "c1"), TooFewFreeGpus)
    ENDS[name](cluster)
    assert cluster.desk.reservations == ()
    assert obstacle(cluster, "c1") is None


STAYS: dict[str, Callable[[Cluster], Any]] = {
    "the pod is observed again, unbound": lambda it: it.put(pod("p0", "c0")),
    "another pod is gone": lambda it: it.drop(it.pods["p1"]),
    "a Lease of others is released": lambda it: (it.put(lease("n0", 3, "uid-x")), it.drop(it.leases["gpu-n0-3"])),
    "the node changes": lambda it: it.put(node("n0", gpus=4)),
    "the node is observed as gone, and again": lambda it: (it.drop(it.nodes["n0"]), it.put(node("n0"))),
    "the agent reports again": lambda it: it.put(report("n0", board_of("n0"))),
    "the agent reports the GPUs in another order": lambda it: it.put(report("n0", board_of("n0")[::-1])),
    "the agent reports after a pause": lambda it: (unreported(it), it.put(report("n0", board_of("n0")))),
    "the policies change": lambda it: it.desk.set_pools([pool("a100")]),
}


@pytest.mark.parametrize("name", STAYS)
def test_a_reservation_stays(name: str) -> None:
    """Three of four GPUs are reserved: the fourth is free, and none of the three is given away."""
    cluster = ready(3, 1, 2)
    first = reserved(cluster, "p0")
    STAYS[name](cluster)
    assert cluster.desk.reservations == (first,)
    assert isinstance(cluster.desk.reserve(pod("p2", "c2"), "n0"), TooFewFreeGpus)
    other = cluster.desk.reserve(pod("p1", "c1"), "n0")
    assert isinstance(other, Reservation)
    assert not set(ids(first)) & set(ids(other))
    cluster.desk.end_reservation(other)
    cluster.desk.end_reservation(first)
    assert cluster.desk.free_gpus() == {"a100": 4}


def test_a_gpu_that_has_another_id_after_a_reboot_stays_reserved() -> None:
    cluster = ready(1, 1, 1, 1)
    first = reserved(cluster, "p0")
    assert ids(first) == [0]
    moved = [(3 - device, uuid, island) for device, uuid, island in board_of("n0")]
    cluster.put(report("n0", moved))
    others = [cluster.desk.reserve(cluster.pods[f"p{number}"], "n0") for number in (1, 2, 3)]
    lent = [each for other in others if isinstance(other, Reservation) for each in other.bind.leases]
    assert {each.uuid for each in lent} == {"GPU-n0-1", "GPU-n0-2"}
    assert {each.device for each in lent} == {1, 2}


def test_many_claims_are_read_once_for_the_next_question(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[int] = []

    def read(found: Iterable[Any]) -> Any:
        listed = list(found)
        reads.append(len(listed))
        return read_gpu_requests(listed)

    monkeypatch.setattr("reconciler.protocol.desk.read_gpu_requests", read)
    cluster = ready(*[1] * 50)
    assert obstacle(cluster, "c7") is None
    assert sum(reads) <= 100


# --- Any sequence of changes.

NODES, CLAIMS, PODS = ("n0", "n1", "n2"), ("c0", "c1", "c2", "c3"), ("p0", "p1", "p2", "p3", "p4", "p5")
POOLS = (pool("a100"), pool("l4", allocation="plugin"))
OPERATIONS = (
    "node", "report", "claim", "pod", "lease", "drop", "pools", "mix", "reserve", "reserve", "reserve", "fail",
)  # fmt: skip


def new_object(chance: random.Random, kind: str) -> Any:
    name = chance.choice(NODES)
    match kind:
        case "node":
            return node(name, chance.choice(["a100", "a100", "l4", ""]), chance.choice([4, 4, 3, 0]))
        case "report":
            gpus = board_of(name, chance.choice([4, 4, 4, 2]), chance.choice([1, 2, 4]))
            places = [each[0] for each in gpus]
            if chance.random() < 0.3:
                chance.shuffle(places)
            return report(name, [(place, uuid, island) for place, (_, uuid, island) in zip(places, gpus, strict=True)])
        case "claim":
            policy = chance.choice(["any", "contiguous", "requireContiguous"])
            fields: dict[str, Any] = {"model": chance.choice(["a100", "l4"])} if chance.random() < 0.3 else {}
            count = chance.choice([1, 1, 2, 3, 4, "x"])
            return claim(chance.choice(CLAIMS), count=count, policy=policy, suspend=chance.random() < 0.05, **fields)
        case "pod":
            place, phase = chance.choice([("", ""), ("", ""), (name, ""), (name, "Succeeded")])
            return pod(chance.choice(PODS), chance.choice(CLAIMS), place, phase)
        case _:
            device = chance.randrange(4)
            return lease(
                name, device, f"uid-{chance.choice((*PODS, 'gone'))}", chance.choice(["", f"GPU-{name}-{device}"])
            )


def operate(cluster: Cluster, chance: random.Random, operation: str) -> None:
    desk = cluster.desk
    match operation:
        case "drop":
            if objects := cluster.objects():
                cluster.drop(chance.choice(objects))
        case "pools":
            cluster.pools = chance.choice([POOLS, POOLS, POOLS[:1], (pool("a100", mode="Observe"),)])
            desk.set_pools(cluster.pools)
        case "mix":
            desk.look_at_mix()
        case "reserve":
            waiting = [each for each in cluster.pods.values() if not each.node and not each.is_finished]
            if waiting:
                reserve(cluster, chance.choice(waiting), chance.choice(NODES))
        case "fail":
            if desk.reservations:
                desk.end_reservation(chance.choice(desk.reservations))
        case _:
            cluster.put(new_object(chance, operation))


def reserve(cluster: Cluster, waiting: Any, node_name: str) -> None:
    """A new reservation takes no GPU of another one, and none that somebody else holds."""
    desk = cluster.desk
    before = [each for each in desk.reservations if each.node == node_name]
    result = desk.reserve(waiting, node_name)
    if not isinstance(result, Reservation) or result in before:
        return
    own = {each.metadata.name for each in cluster.leases.values() if each.spec.holder_identity == result.uid}
    lent = {each.metadata.name for each in cluster.leases.values() if each.spec.holder_identity != result.uid}
    taken = {each.name for other in before for each in other.bind.leases}
    uuids = {each.uuid for other in before for each in other.bind.leases} - {""}
    assert not {each.name for each in result.bind.leases} & lent
    if not {each.name for each in result.bind.leases} <= own:  # the API server has decided who holds a Lease
        assert not {each.name for each in result.bind.leases} & taken
        assert not {each.uuid for each in result.bind.leases} & uuids


def expected(cluster: Cluster, claim_name: str, node_name: str) -> type[Obstacle] | None:
    """The answer by the observed objects and the reservations, without any group or memory."""
    found, there = cluster.claims.get(claim_name), cluster.nodes.get(node_name)
    if found is None or found.spec.get("suspend") or (devices := claimed_devices(found.spec)) is None:
        return GpuClaimUnusable
    if there is None:
        return NodeAbsent
    own = next((each for each in cluster.pools if each.name == there.pool), None)
    if own is None or own not in serving_pools(found.spec, devices, cluster.pools):
        return NotInPoolOfClaim
    board = read_board(there, cluster.reports.get(node_name), own.spec.devices)
    if own.spec.mode != "Enforce":
        return PoolOfNodeObserved
    if own.spec.allocation == "agent" and not all(board.uuids):
        return GpusOfNodeUnreported
    requests = read_gpu_requests(cluster.claims.values())
    taken = DeviceLedger(cluster.leases.values(), cluster.pods.values(), requests).taken(node_name, board).all
    for each in cluster.desk.reservations:
        if each.node == node_name:
            for lent in each.bind.leases:
                taken |= board.layout.set_of((lent.device,)) | board.set_of_uuid(lent.uuid)
    chosen = choose(board, taken, devices)
    return None if isinstance(chosen, Chosen) else type(chosen)


def answers_agree(cluster: Cluster) -> None:
    for name in CLAIMS:
        found = cluster.desk.answers((TEAM, name), NODES)
        for node_name in NODES:
            answer = found[node_name].obstacle
            told = type(answer) if answer is not None else None
            assert told is expected(cluster, name, node_name), (name, node_name)


@settings(max_examples=150)
@given(st.integers(0, 2**32))
def test_whatever_is_observed_no_gpu_is_reserved_twice_and_answers_are_as_computed_anew(seed: int) -> None:
    chance = random.Random(seed)
    cluster = Cluster(*POOLS)
    for name in NODES[:2]:
        cluster.put(node(name), report(name, board_of(name)))
    cluster.put(claim("c0"), claim("c1", count=2), pod("p0", "c0"), pod("p1", "c1"))
    for _ in range(60):
        operate(cluster, chance, chance.choice(OPERATIONS))
        answers_agree(cluster)
        waiting = {each.metadata.uid for each in cluster.pods.values() if not each.node and not each.is_finished}
        assert {each.uid for each in cluster.desk.reservations} <= waiting
    ends_like_a_new_desk(cluster, chance)


def ends_like_a_new_desk(cluster: Cluster, chance: random.Random) -> None:
    """Without reservations, a desk is as one that was told of the objects in another order, but for the ranks, which
    may have the weights of an earlier mix."""
    for each in cluster.desk.reservations:
        cluster.desk.end_reservation(each)
    fresh = Cluster(*cluster.pools)
    objects = cluster.objects()
    chance.shuffle(objects)
    fresh.put(*objects)
    for desk in (cluster.desk, fresh.desk):
        desk.look_at_mix()
    assert cluster.desk.free_gpus() == fresh.desk.free_gpus()
    for name in CLAIMS:
        found, anew = (each.desk.answers((TEAM, name), NODES) for each in (cluster, fresh))
        assert {node: each.obstacle for node, each in found.items()} == {
            node: each.obstacle for node, each in anew.items()
        }
