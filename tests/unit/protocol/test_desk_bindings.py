"""Reservations of the desk for pods that hold GPUs already, after a crash in the middle of a Binding."""

from typing import Any

import msgspec
import pytest

from reconciler.fleet.amounts import claim_of
from reconciler.model.plan.decision import Obstacle
from reconciler.protocol.desk import Desk, Reservation
from tests.unit.plan.gpu.stage import World
from tests.unit.protocol.desk_stage import Cluster, board_of, claim, lease, node, pod, report


def desk_of(case: dict[str, Any]) -> tuple[Desk, World]:
    world, desk = World(case), Desk()
    observed = world.inputs.observed
    desk.set_pools(world.inputs.desired.pools)
    for each_node in observed.nodes:
        desk.put_node(each_node)
    for each_policy in observed.policies:
        desk.put_policy(each_policy)
    for each_pod in observed.pods:
        desk.put_pod(each_pod)
    for each_lease in observed.leases:
        desk.put_lease(each_lease)
    desk.is_read = True
    return desk, world


@pytest.mark.parametrize(
    ("count", "held", "expected"),
    [
        (2, [4, 5], (4, 5)),  # all of its GPUs: the same again
        (2, [4], (0, 1)),
        (8, [4, 5, 6], tuple(range(8))),  # some of its GPUs are free for the pod
        (8, [], tuple(range(8))),
    ],
)
def test_gpus_that_the_pod_holds_are_free_for_the_pod(count: int, held: list[int], expected: tuple[int, ...]) -> None:
    desk, world = desk_of(
        {
            "claims": {"one": {"count": count}},
            "pods": {"train": {"gpus": count}},
            "leases": {f"a/{device}": {"pod": "train"} for device in held},
        }
    )
    (asking,) = world.inputs.observed.pods
    assert bound_devices(desk.reserve(asking, "a")) == expected


def test_the_pod_that_holds_gpus_is_offered_its_node_and_no_other_pod_is() -> None:
    desk, world = desk_of(
        {
            "claims": {"one": {"count": 8}},
            "pods": {"train": {"gpus": 8}, "other": {"gpus": 8}},
            "leases": {f"a/{device}": {"pod": "train"} for device in (4, 5, 6)},
        }
    )
    train, other = sorted(world.inputs.observed.pods, key=lambda each: each.name, reverse=True)
    key = claim_of(train)
    assert [
        desk.answers(key, ["a"], uid)["a"].rank is not None for uid in (train.metadata.uid, other.metadata.uid, "")
    ] == [
        True,
        False,
        False,
    ]
    assert isinstance(desk.reserve(train, "a"), Reservation)
    assert desk.answers(key, ["a"], train.metadata.uid)["a"].rank is not None
    assert desk.answers(key, ["a"], other.metadata.uid)["a"].rank is None


def test_a_gpu_that_became_unhealthy_is_not_bound_though_the_pod_holds_it() -> None:
    cluster = Cluster().put(node("n0"), report("n0", board_of("n0")), claim("two", count=2))
    train = pod("train", "two")
    cluster.put(train, *(lease("n0", device, train.metadata.uid) for device in (2, 3)))
    assert bound_devices(cluster.desk.reserve(train, "n0")) == (2, 3)
    cluster = Cluster().put(node("n0"), claim("two", count=2), train, *cluster.leases.values())
    status = {"devices": [{**each, "health": "Unhealthy"} if each["id"] == 2 else each for each in devices_of("n0")]}
    cluster.put(msgspec.structs.replace(report("n0", []), rest={"spec": {}, "status": status}))
    assert bound_devices(cluster.desk.reserve(train, "n0")) == (0, 1)


def devices_of(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = report(name, board_of(name)).status["devices"]
    return found


def bound_devices(reservation: Reservation | Obstacle) -> tuple[int, ...]:
    assert isinstance(reservation, Reservation)
    return tuple(each.device for each in reservation.bind.leases)
