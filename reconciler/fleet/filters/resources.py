"""Whether what is left of a node is enough: of every resource that a pod asks for, and one place among its pods."""

from typing import ClassVar

from reconciler.fleet.obstacles import Lack, ResourcesLacking
from reconciler.fleet.pod_class import PodClass
from reconciler.fleet.rows import Mask
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.obstacle import Obstacle


class ResourceFilter:
    """What is allocatable, less what is booked."""

    name: ClassVar[str] = "resources"
    static: ClassVar[bool] = False

    def __init__(self, fleet: Snapshot) -> None:
        pass

    def concerns(self, pod_class: PodClass, fleet: Snapshot) -> bool:
        return True

    def mask(self, pod_class: PodClass, fleet: Snapshot) -> Mask | None:
        return fleet.stock.roomy(pod_class.request)

    def fits(self, pod_class: PodClass, row: int, fleet: Snapshot) -> bool:
        return fleet.stock.room(pod_class.request, row) > 0

    def why(self, pod_class: PodClass, row: int, fleet: Snapshot) -> Obstacle:
        stock, names = fleet.stock, fleet.classes.resources
        lacks = (
            Lack(names[column], amount, free, stock.allocatable_at(row, column))
            for column, amount in pod_class.request
            if (free := stock.free_at(row, column)) < amount
        )
        return ResourcesLacking(tuple(lacks))
