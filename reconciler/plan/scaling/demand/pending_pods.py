"""Empty nodes that stay for pods which were evicted lately, and which nobody has made anew yet.

Each of these pods is placed on a node in use that stays, where one has room; else on an empty node that stays, the one
that was found when the pod was evicted first; else on a marked node, which then stays as well. Pods that wait are
placed before them. Nothing is bought for a pod that nobody has made yet.

It changes the what-if fleet: call it within a fork.
"""

from collections.abc import Callable, Mapping, Sequence

import msgspec
import numpy as np

from reconciler.fleet.first_fit import Search
from reconciler.fleet.pod_classes import PodClass
from reconciler.fleet.questions import fits, place
from reconciler.fleet.rows import Mask, Places
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.drain_memory import Evicted
from reconciler.plan.capacity.demand import PodReservation
from reconciler.plan.scaling.demand.assignment import MARKED, marked_name
from reconciler.plan.scaling.demand.in_flight_nodes import instead_of, real_name, without
from reconciler.plan.scaling.marks import KEY
from reconciler.plan.scaling.pool_view import PoolView, ScalingContext
from reconciler.plan.sums import is_empty


class Awaiting:
    """Owner of which of the evicted pods have no place yet, and of the empty nodes that are kept for the others."""

    def __init__(
        self, context: ScalingContext, pool_views: Sequence[PoolView], evicted: Sequence[tuple[Evicted, Pod]]
    ) -> None:
        self.nodes: set[str] = set()  # names of empty nodes
        self._context, self._pool_views = context, pool_views
        self._fleet = context.fleet.snapshot
        self._left = sorted(
            (pod for _, pod in evicted), key=lambda pod: (self._fleet.classes.of(pod).anew.rank, pod.title)
        )
        self._homes = {each.uid: each.home for each, _ in evicted if each.home}

    def on_staying(self, staying: Mask, order: Callable[[], Places]) -> None:
        """`staying`: rows of nodes that nobody takes away."""
        counting, rows = self._context.fleet.occupancy.counting, self._fleet.rows
        in_use = np.zeros_like(staying)
        in_use[[row for name, row in rows.row_of.items() if counting[real_name(name)]]] = True
        self._place(staying & in_use, order)
        self.nodes.update(map(real_name, self._place(staying, order)))

    def on_marked(self) -> None:
        """Those that nobody needs yet, as if they were not marked. The last to go is the first to be kept."""
        rows = self._fleet.rows
        if self._left:
            for pool_view in self._pool_views:
                marked = [each.node for each in pool_view.ours if is_empty(self._context.fleet, each.node)]
                for at, node in enumerate(reversed(pool_view.order.sorted(marked))):
                    if rows.alive[rows.row_of[node.name]]:  # else it stands there by its other name already
                        instead_of(self._fleet, node, without(node, KEY, marked_name(node, at)))
            allowed = np.zeros_like(rows.alive)
            allowed[[row for name, row in rows.row_of.items() if name.startswith(MARKED)]] = True
            self.nodes.update(name.split("/", 2)[2] for name in self._place(allowed))

    def _place(self, allowed: Mask, order: Callable[[], Places] | None = None) -> list[str]:
        """Names of the nodes on which some of the pods find a place."""
        if not self._left or not allowed.any():
            return []
        allowed = allowed & self._fleet.rows.alive
        budget = self._context.inputs.budget
        search = Search(order=order, allowed=allowed, hints=self._homes, budget=budget, tells_why=False)
        placement = place(self._fleet, self._left, search)
        self._left = [pod for pod in self._left if pod.metadata.uid not in placement.destinations]
        return sorted(set(placement.destinations.values()))


# --- Pods whose place was promised when the one before them was evicted: they are booked there, and are no demand.
#
# It changes the what-if fleet: call it within a fork. What is still on its way out is taken for gone; but a pod behind
# our gate is let go only once there is room beside that as well, or Karpenter would see it wait.


class ReservedPlaces(msgspec.Struct, frozen=True):
    """Promises that can be kept."""

    promises: tuple[PodReservation, ...] = ()
    at_once: Mapping[str, str] = {}  # uid of a pod that need not wait until the one before it is gone -> where to

    @property
    def uids(self) -> frozenset[str]:
        return frozenset(each.pod.metadata.uid for each in self.promises)


def keep(snapshot: Snapshot, promises: Sequence[PodReservation], staying: Mask) -> ReservedPlaces:
    """Each where its place still has room, on a node that stays."""
    row_of = snapshot.rows.row_of
    there = [each for each in promises if each.home in row_of and staying[row_of[each.home]]]
    at_once = {each.pod.metadata.uid: each.home for each in there if not fits(snapshot, each.pod, each.home)}
    going = _placed_before(snapshot, there)
    for row, pod_class in going:
        snapshot.remove(pod_class, row)
    kept = []
    for each in there:
        if not fits(snapshot, each.pod, each.home):  # it tells the reasons why not
            snapshot.add(snapshot.classes.of(each.pod).anew, row_of[each.home])
            kept.append(each)
    for row, pod_class in going:
        snapshot.add(pod_class, row)
    uids = {each.pod.metadata.uid for each in kept}
    return ReservedPlaces(tuple(kept), {uid: home for uid, home in at_once.items() if uid in uids})


def _placed_before(snapshot: Snapshot, promises: Sequence[PodReservation]) -> list[tuple[int, PodClass]]:
    """Those before them that are there still, and where."""
    result = []
    for each in promises:
        row = snapshot.rows.row_of.get(each.left)
        # A node that arrives stands in a row of its own by now, and nothing is booked on the row that was seen.
        pods = snapshot.pods_of_row(row) if row is not None and snapshot.rows.alive[row] else []
        before = next((pod for pod in pods if pod.metadata.uid == each.before), None)
        if row is not None and before is not None and before.metadata.leaving:
            result.append((row, snapshot.classes.of(before)))
    return result
