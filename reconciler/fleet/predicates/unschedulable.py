"""Cordoned nodes take only pods that tolerate the taint of cordoned nodes."""

from typing import ClassVar

import numpy as np

from reconciler.fleet.pod_class import PodClass
from reconciler.fleet.predicates.taints import tolerated
from reconciler.fleet.rows import Mask
from reconciler.fleet.what_if import WhatIf
from reconciler.model.cluster.node import NodeTaint

_CORDONED = NodeTaint("node.kubernetes.io/unschedulable", "NoSchedule")


class Unschedulable:
    """Nodes that are cordoned."""

    name: ClassVar[str] = "unschedulable"
    static: ClassVar[bool] = True

    def __init__(self, fleet: WhatIf) -> None:
        pass

    def concerns(self, pod_class: PodClass, fleet: WhatIf) -> bool:
        return not tolerated(_CORDONED, pod_class.needs.tolerations)

    def mask(self, pod_class: PodClass, fleet: WhatIf) -> Mask | None:
        open_ = [not cordoned for _, cordoned in fleet.rows.taint_groups]
        if all(open_) or not self.concerns(pod_class, fleet):
            return None
        found: Mask = np.array(open_, bool)[fleet.rows.taint_group]
        return found

    def fits(self, pod_class: PodClass, row: int, fleet: WhatIf) -> bool:
        return not fleet.rows.node(row).spec.unschedulable or not self.concerns(pod_class, fleet)

    def why(self, pod_class: PodClass, row: int, fleet: WhatIf) -> str:
        return "the node is cordoned"
