"""Cordoned nodes take only pods that tolerate the taint of cordoned nodes."""

from typing import ClassVar

import numpy as np

from reconciler.fleet.obstacles import NodeCordoned
from reconciler.fleet.pod_class import PodClass
from reconciler.fleet.rows import Mask
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.node import NodeTaint
from reconciler.model.obstacle import Obstacle

_CORDONED = NodeTaint("node.kubernetes.io/unschedulable", "NoSchedule")


class Unschedulable:
    """Nodes that are cordoned."""

    name: ClassVar[str] = "unschedulable"
    static: ClassVar[bool] = True

    def __init__(self, fleet: Snapshot) -> None:
        self._open: Mask = np.zeros(0, bool)  # by group of taints; none of these ever changes

    def concerns(self, pod_class: PodClass, fleet: Snapshot) -> bool:
        return not pod_class.needs.tolerance.bears(_CORDONED)

    def mask(self, pod_class: PodClass, fleet: Snapshot) -> Mask | None:
        if not self.concerns(pod_class, fleet):
            return None
        groups = fleet.rows.taint_groups
        if len(self._open) != len(groups):
            self._open = np.array([not cordoned for _, cordoned in groups], bool)
        if self._open.all():
            return None
        mask: Mask = self._open[fleet.rows.taint_group]
        return mask

    def fits(self, pod_class: PodClass, row: int, fleet: Snapshot) -> bool:
        return not fleet.rows.node(row).spec.unschedulable or not self.concerns(pod_class, fleet)

    def why(self, pod_class: PodClass, row: int, fleet: Snapshot) -> Obstacle:
        return NodeCordoned()
