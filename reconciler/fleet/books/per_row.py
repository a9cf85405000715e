"""Owner of something that was found of rows, for as long as the node and the pods seen on it are the same objects."""

from collections.abc import Callable
from typing import Generic, TypeVar

from reconciler.fleet.what_if import WhatIf
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod

T = TypeVar("T")


class PerRow(Generic[T]):
    """Found when first asked for. `find` may go by nothing but the node, the pods seen there, and their classes."""

    def __init__(self, fleet: WhatIf, find: Callable[[int], T]) -> None:
        self._nodes, self._pods_of = fleet.rows.nodes, fleet.pods_of_row
        self._find = find
        self._known: dict[int, tuple[Node | None, tuple[Pod, ...], T]] = {}

    def of(self, row: int) -> T:
        """The same object as before, if nothing was seen to change."""
        node, pods = self._nodes[row], self._pods_of(row)
        known = self._known.get(row)
        if known is None or known[0] is not node or known[1] is not pods:
            known = self._known[row] = node, pods, self._find(row)
        return known[2]
