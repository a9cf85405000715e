"""Pods that smart pods were made for, on the machines that will come for them; others may use what is left there.

It changes the what-if fleet: call it within a fork.
"""

from collections.abc import Sequence

import msgspec

from reconciler.fleet.binpack.shape import Shape
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.pod import Pod
from reconciler.plan.capacity.offerings import LaunchOption, labels_of
from reconciler.plan.capacity.requests import Requested
from reconciler.plan.scaling.demand.in_flight_nodes import as_it_will_be
from reconciler.plan.scaling.pool_view import PoolView


class OnTheirWay(msgspec.Struct, frozen=True):
    """What is on its way for smart pods."""

    rows: dict[int, str]  # of the machines, and the smart pods they are for
    used: frozenset[str]  # smart pods of which a pod still waits
    pods: tuple[Pod, ...]  # that they are for
    covered: dict[str, str]  # the same by uid, and the smart pod that each waits for


def on_their_way(pool_view: PoolView, snapshot: Snapshot, shapes: Sequence[Shape], pods: Sequence[Pod]) -> OnTheirWay:
    """`pods` of this pool, which wait."""
    by_name = {each.name: each for each in shapes}
    waiting = {pod.metadata.uid: pod for pod in pods}
    rows: dict[int, str] = {}
    used: set[str] = set()
    covered: dict[str, str] = {}
    for each in pool_view.context.draft.requests.of(pool_view.pool.name):
        shape = by_name.get(each.request.instance_type)
        if shape is None or not each.awaits_machine:
            continue
        row = snapshot.bring(as_it_will_be(f"asked/{each.name}", _labels(each), shape))
        rows[row] = each.name
        for uid in each.request.pods:
            if uid in waiting and uid not in covered:
                covered[uid] = each.name
                used.add(each.name)
                snapshot.add(snapshot.classes.of(waiting[uid]).anew, row)
    return OnTheirWay(rows, frozenset(used), tuple(waiting[uid] for uid in covered), covered)


def _labels(each: Requested) -> dict[str, str]:
    if each.claim is not None:
        return each.claim.metadata.labels
    request = each.request
    return dict(labels_of(LaunchOption(request.instance_type, request.capacity_type, request.zone)))
