"""Taints that a pod does not tolerate: NoSchedule and NoExecute keep it away, PreferNoSchedule does not."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

import numpy as np

from reconciler.fleet.obstacles import TaintNotTolerated
from reconciler.fleet.pod_class import PodClass
from reconciler.fleet.rows import Mask
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.fleet.tolerance import Tolerance
from reconciler.model.cluster.node import NodeTaint
from reconciler.model.cluster.pod import Toleration
from reconciler.model.obstacle import Obstacle

_HARD = frozenset({"NoSchedule", "NoExecute"})


class TaintFilter:
    """The taints of the nodes."""

    name: ClassVar[str] = "taints"
    static: ClassVar[bool] = True

    def __init__(self, fleet: Snapshot) -> None:
        self._groups_of: dict[tuple[str, str, str], tuple[NodeTaint, list[int]]] = {}  # groups of nodes with a taint
        self._known = 0  # groups that were looked at

    def concerns(self, pod_class: PodClass, fleet: Snapshot) -> bool:
        return True

    def mask(self, pod_class: PodClass, fleet: Snapshot) -> Mask | None:
        groups, tolerance = fleet.rows.taint_groups, pod_class.needs.tolerance
        self._learn(groups)
        borne: Mask = np.ones(len(groups), bool)
        for taint, where in self._groups_of.values():
            if not tolerance.bears(taint):
                borne[where] = False
        if borne.all():
            return None
        mask: Mask = borne[fleet.rows.taint_group]
        return mask

    def fits(self, pod_class: PodClass, row: int, fleet: Snapshot) -> bool:
        return unborne(fleet.rows.node(row).spec.taints, pod_class.needs.tolerance) is None

    def why(self, pod_class: PodClass, row: int, fleet: Snapshot) -> Obstacle:
        taint = unborne(fleet.rows.node(row).spec.taints, pod_class.needs.tolerance)
        if taint is None:
            raise LookupError("it tolerates every taint")
        return TaintNotTolerated(taint.key, taint.value, taint.effect)

    def _learn(self, groups: Sequence[tuple[tuple[NodeTaint, ...], bool]]) -> None:
        """Groups that are new; none is forgotten."""
        for number in range(self._known, len(groups)):
            for taint in groups[number][0]:
                if taint.effect in _HARD:
                    key = (taint.key, taint.effect, taint.value)
                    self._groups_of.setdefault(key, (taint, []))[1].append(number)
        self._known = len(groups)


def unborne(taints: Iterable[NodeTaint], tolerance: Tolerance) -> NodeTaint | None:
    """The first taint that keeps a pod away."""
    for taint in taints:
        if taint.effect in _HARD and not tolerance.bears(taint):
            return taint
    return None


def untolerated(taints: Iterable[NodeTaint], tolerations: Iterable[Toleration]) -> NodeTaint | None:
    """The first taint that keeps a pod away."""
    return unborne(taints, Tolerance(tolerations))


def tolerated(taint: NodeTaint, tolerations: Iterable[Toleration]) -> bool:
    """Whether one of the tolerations bears the taint."""
    return Tolerance(tolerations).bears(taint)
