"""Empty nodes that stay for recently evicted pods that were not recreated yet.

Each such pod is placed on a busy node that stays, if one has room; else on an empty node that stays, first on the
destination of the eviction; else on a marked node, which then stays too. Waiting pods are placed before. Nothing is
bought for a pod that does not exist yet.

Changes the what-if fleet: call within a fork.
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
    """Evicted pods without a node, and the empty nodes that are kept for the others. Mutable."""

    def __init__(
        self, context: ScalingContext, pool_views: Sequence[PoolView], evicted: Sequence[tuple[Evicted, Pod]]
    ) -> None:
        self.nodes: set[str] = set()  # names of empty nodes that are kept
        self._context, self._pool_views = context, pool_views
        self._fleet = context.fleet.snapshot
        self._left = sorted(
            (pod for _, pod in evicted), key=lambda pod: (self._fleet.classes.of(pod).anew.rank, pod.title)
        )
        self._homes = {each.uid: each.home for each, _ in evicted if each.home}

    def on_staying(self, staying: Mask, order: Callable[[], Places]) -> None:
        """Place pods on nodes that stay. `staying`: rows of nodes that nobody removes."""
        counting, rows = self._context.fleet.occupancy.counting, self._fleet.rows
        in_use = np.zeros_like(staying)
        in_use[[row for name, row in rows.row_of.items() if counting[real_name(name)]]] = True
        self._place(staying & in_use, order)
        self.nodes.update(map(real_name, self._place(staying, order)))

    def on_marked(self) -> None:
        """Place pods on marked nodes that no other pod needs, as if they had no mark. The last node in removal order is
        kept first.
        """
        rows = self._fleet.rows
        if self._left:
            for pool_view in self._pool_views:
                marked = [each.node for each in pool_view.ours if is_empty(self._context.fleet, each.node)]
                for at, node in enumerate(reversed(pool_view.order.sorted(marked))):
                    if rows.alive[rows.row_of[node.name]]:  # else the fleet has the node under its simulated name
                        instead_of(self._fleet, node, without(node, KEY, marked_name(node, at)))
            allowed = np.zeros_like(rows.alive)
            allowed[[row for name, row in rows.row_of.items() if name.startswith(MARKED)]] = True
            self.nodes.update(name.split("/", 2)[2] for name in self._place(allowed))

    def _place(self, allowed: Mask, order: Callable[[], Places] | None = None) -> list[str]:
        """Names of the nodes on which pods are placed."""
        if not self._left or not allowed.any():
            return []
        allowed = allowed & self._fleet.rows.alive
        budget = self._context.inputs.budget
        search = Search(order=order, allowed=allowed, hints=self._homes, budget=budget, tells_why=False)
        placement = place(self._fleet, self._left, search)
        self._left = [pod for pod in self._left if pod.metadata.uid not in placement.destinations]
        return sorted(set(placement.destinations.values()))


# --- Reservations: successors of evicted pods are booked on their reserved nodes, and are no demand.
#
# Changes the what-if fleet: call within a fork. Terminating predecessors count as gone. But the gate of a pod is
# removed only when there is room beside its terminating predecessor too; otherwise Karpenter would see the pod wait.


class ReservedPlaces(msgspec.Struct, frozen=True):
    """Reservations that are kept."""

    promises: tuple[PodReservation, ...] = ()
    at_once: Mapping[str, str] = {}  # uid of a pod that fits beside its terminating predecessor -> its node

    @property
    def uids(self) -> frozenset[str]:
        return frozenset(each.pod.metadata.uid for each in self.promises)


def keep(snapshot: Snapshot, promises: Sequence[PodReservation], staying: Mask) -> ReservedPlaces:
    """Keep each reservation whose node stays and still has room."""
    row_of = snapshot.rows.row_of
    there = [each for each in promises if each.home in row_of and staying[row_of[each.home]]]
    at_once = {each.pod.metadata.uid: each.home for each in there if not fits(snapshot, each.pod, each.home)}
    going = _placed_before(snapshot, there)
    for row, pod_class in going:
        snapshot.remove(pod_class, row)
    kept = []
    for each in there:
        if not fits(snapshot, each.pod, each.home):  # `fits` returns obstacles
            snapshot.add(snapshot.classes.of(each.pod).anew, row_of[each.home])
            kept.append(each)
    for row, pod_class in going:
        snapshot.add(pod_class, row)
    uids = {each.pod.metadata.uid for each in kept}
    return ReservedPlaces(tuple(kept), {uid: home for uid, home in at_once.items() if uid in uids})


def _placed_before(snapshot: Snapshot, promises: Sequence[PodReservation]) -> list[tuple[int, PodClass]]:
    """Terminating predecessors that still exist, with their rows."""
    result = []
    for each in promises:
        row = snapshot.rows.row_of.get(each.left)
        # An arriving node has a row of its own by now, and the observed row has no pods.
        pods = snapshot.pods_of_row(row) if row is not None and snapshot.rows.alive[row] else []
        before = next((pod for pod in pods if pod.metadata.uid == each.before), None)
        if row is not None and before is not None and before.metadata.leaving:
            result.append((row, snapshot.classes.of(before)))
    return result
