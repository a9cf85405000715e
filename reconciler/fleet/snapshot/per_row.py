"""Owner of something that was found of rows, for as long as the node and the pods seen on it are the same objects."""

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod

T = TypeVar("T")


class PerRow(ABC, Generic[T]):
    """Found when first asked for; `what_if.part(...)` of a class of these is the one of a what-if."""

    def __init__(self, fleet: Snapshot) -> None:
        self.fleet = fleet
        self._nodes, self._told = fleet.rows.nodes, fleet.bound.told
        self._known: dict[int, tuple[Node | None, tuple[Pod, ...] | None, T]] = {}

    @abstractmethod
    def find(self, row: int) -> T:
        """To go by nothing but the node, the pods seen there, and their classes."""

    def of(self, row: int) -> T:
        """The same object as before, if nothing was seen to change."""
        known = self._known.get(row)
        if known is None or known[0] is not self._nodes[row] or known[1] is not self._told[row]:
            pods = self.fleet.pods_of_row(row)
            known = self._known[row] = self._nodes[row], pods, self.find(row)
        return known[2]
