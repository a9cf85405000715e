"""A pod that names its node is on no other."""

from typing import ClassVar

import numpy as np

from reconciler.fleet.obstacles import OtherNodeNamed
from reconciler.fleet.pod_class import PodClass
from reconciler.fleet.rows import Mask
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.obstacle import Obstacle


class NodeName:
    """The node that a pod names."""

    name: ClassVar[str] = "node name"
    static: ClassVar[bool] = True

    def __init__(self, fleet: Snapshot) -> None:
        pass

    def concerns(self, pod_class: PodClass, fleet: Snapshot) -> bool:
        return bool(pod_class.needs.node_name)

    def mask(self, pod_class: PodClass, fleet: Snapshot) -> Mask | None:
        named = pod_class.needs.node_name
        if not named:
            return None
        mask: Mask = np.zeros(fleet.rows.capacity, bool)
        row = fleet.rows.row_of.get(named)
        if row is not None:
            mask[row] = True
        return mask

    def fits(self, pod_class: PodClass, row: int, fleet: Snapshot) -> bool:
        named = pod_class.needs.node_name
        return not named or fleet.rows.row_of.get(named) == row

    def why(self, pod_class: PodClass, row: int, fleet: Snapshot) -> Obstacle:
        return OtherNodeNamed(pod_class.needs.node_name)
