"""Reservations of the desk for pods that hold GPUs already, after a crash in the middle of a Binding."""

from typing import Any

import pytest

from reconciler.protocol.desk import Desk, Reservation
from tests.unit.plan.gpu.stage import World


def desk_of(case: dict[str, Any]) -> tuple[Desk, World]:
    world, desk = World(case), Desk()
    observed = world.inputs.observed
    desk.set_pools(world.inputs.desired.pools)
    for node in observed.nodes:
        desk.put_node(node)
    for policy in observed.policies:
        desk.put_policy(policy)
    for pod in observed.pods:
        desk.put_pod(pod)
    for lease in observed.leases:
        desk.put_lease(lease)
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
    (pod,) = world.inputs.observed.pods
    reservation = desk.reserve(pod, "a")
    assert isinstance(reservation, Reservation)
    assert tuple(each.device for each in reservation.bind.leases) == expected
