"""Which of the nodes that would take a pod gets it: as kube-scheduler's defaults weigh them, in what matters here.

Nodes with a PreferNoSchedule taint that it does not tolerate are the last resort; of the others the one with the
largest share of cpu and memory left afterwards, or the smallest where pods are to fill nodes; then by name.
"""

import numpy as np

from reconciler.fleet.pod_class import PodClass
from reconciler.fleet.rows import Mask, Places
from reconciler.fleet.snapshot.snapshot import Snapshot

_WEIGHED = ("cpu", "memory")


def choose(fleet: Snapshot, pod_class: PodClass, mask: Mask, fills: bool) -> int | None:
    """The row; None where there is none."""
    order = fleet.rows.order
    rows: Places = order[mask[order]]
    if not len(rows):
        return None
    if (avoided := _avoided(fleet, pod_class)) is not None:
        best = rows[~avoided[rows]]
        rows = best if len(best) else rows
    left = np.zeros(len(rows))
    amounts = dict(pod_class.request)
    for name in _WEIGHED:
        column = fleet.classes.columns[name]
        had = fleet.stock.allocatable[rows, column]
        free = fleet.stock.free_of(column)[rows] - amounts.get(column, 0)
        left += free / np.maximum(had, 1)
    return int(rows[int(left.argmin() if fills else left.argmax())])


def _avoided(fleet: Snapshot, pod_class: PodClass) -> Mask | None:
    """Where a taint says that the pod had better not be."""
    soft = [
        any(each.effect == "PreferNoSchedule" and not pod_class.needs.tolerance.bears(each) for each in taints)
        for taints, _ in fleet.rows.taint_groups
    ]
    if not any(soft):
        return None
    mask: Mask = np.array(soft, bool)[fleet.rows.taint_group]
    return mask
