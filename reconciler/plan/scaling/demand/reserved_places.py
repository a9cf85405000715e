"""Pods whose place was promised when the one before them was evicted: they are booked there, and are no demand.

It changes the what-if fleet: call it within a fork. What is still on its way out is taken for gone; but a pod behind
our gate is let go only once there is room beside that as well, or Karpenter would see it wait.
"""

from collections.abc import Mapping, Sequence

import msgspec

from reconciler.fleet.pod_class import PodClass
from reconciler.fleet.questions import fits
from reconciler.fleet.rows import Mask
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.plan.capacity.reservations import PodReservation


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
