"""Taints that a pod does not tolerate: NoSchedule and NoExecute keep it away, PreferNoSchedule does not."""

from collections.abc import Iterable
from typing import ClassVar

import numpy as np

from reconciler.fleet.pod_class import PodClass
from reconciler.fleet.rows import Mask
from reconciler.fleet.what_if import WhatIf
from reconciler.model.cluster.node import NodeTaint
from reconciler.model.cluster.pod import Toleration

_HARD = frozenset({"NoSchedule", "NoExecute"})


class Taints:
    """The taints of the nodes."""

    name: ClassVar[str] = "taints"
    static: ClassVar[bool] = True

    def __init__(self, fleet: WhatIf) -> None:
        pass

    def concerns(self, pod_class: PodClass, fleet: WhatIf) -> bool:
        return True

    def mask(self, pod_class: PodClass, fleet: WhatIf) -> Mask | None:
        tolerations = pod_class.needs.tolerations
        borne = [untolerated(taints, tolerations) is None for taints, _ in fleet.rows.taint_groups]
        if all(borne):
            return None
        found: Mask = np.array(borne, bool)[fleet.rows.taint_group]
        return found

    def fits(self, pod_class: PodClass, row: int, fleet: WhatIf) -> bool:
        return untolerated(fleet.rows.node(row).spec.taints, pod_class.needs.tolerations) is None

    def why(self, pod_class: PodClass, row: int, fleet: WhatIf) -> str:
        taint = untolerated(fleet.rows.node(row).spec.taints, pod_class.needs.tolerations)
        if taint is None:
            raise LookupError("it tolerates every taint")
        value = f"={taint.value}" if taint.value else ""
        return f"it does not tolerate the taint {taint.key}{value}:{taint.effect}"


def untolerated(taints: Iterable[NodeTaint], tolerations: Iterable[Toleration]) -> NodeTaint | None:
    """The first taint that keeps a pod away."""
    return next((taint for taint in taints if taint.effect in _HARD and not tolerated(taint, tolerations)), None)


def tolerated(taint: NodeTaint, tolerations: Iterable[Toleration]) -> bool:
    """Whether one of the tolerations bears the taint."""
    return any(_bears(each, taint) for each in tolerations)


def _bears(toleration: Toleration, taint: NodeTaint) -> bool:
    """Greater and less than (Gt, Lt) bear nothing: their feature gate is off by default in Kubernetes 1.36."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in {"", "Equal"}:
        return toleration.value == taint.value
    return toleration.operator == "Exists"
