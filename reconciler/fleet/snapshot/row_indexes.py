"""Indexes of the rows of a snapshot: the kinds of nodes, and what was found of a row."""

from abc import ABC, abstractmethod
from collections import Counter
from typing import Generic, TypeVar

import numpy as np

from reconciler.fleet.rows import Counts, Mask
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod

# --- Owner of the kind of each row, its node's pool and instance type, as numbers: nodes of a mask are counted by kind.
#
# A kind is told in words, as `a100 p4d.24xlarge`: whoever reads of twelve nodes wants to know which twelve.

_LABELS = (names.KARPENTER_POOL, names.POOL, names.INSTANCE_TYPE)


class NodeKinds:
    """`snapshot.part(NodeKinds)` is the one of a what-if."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._rows = snapshot.rows
        self._version = -1
        self._names: list[str] = []
        self._of_row: Counts = np.zeros(0, np.int64)

    def counted(self, mask: Mask) -> dict[str, int]:
        """Rows of a mask, all of which have nodes."""
        if self._version != self._rows.version:
            self._read()
            self._version = self._rows.version
        counts = np.bincount(self._of_row[mask], minlength=len(self._names))
        found = Counter[str]()
        for number in np.flatnonzero(counts).tolist():
            found[self._names[number]] += int(counts[number])
        return dict(found)

    def _read(self) -> None:
        rows = self._rows
        code: Counts = np.zeros(rows.capacity, np.int64)
        for key in _LABELS:
            column = rows.column(key)
            code = code * (len(rows.values(key)) + 1) + column + 1
        _, first, number = np.unique(code[rows.order], return_index=True, return_inverse=True)
        self._of_row = np.zeros(rows.capacity, np.int64)
        self._of_row[rows.order] = number
        self._names = [kind_of(rows.node(int(row))) for row in rows.order[first]]


def kind_of(node: Node) -> str:
    """Its pool and its instance type."""
    return f"{node.pool or 'no pool'} {node.instance_type}".rstrip()


# --- Owner of something that was found of rows, for as long as the node and the pods seen on it are the same objects.

T = TypeVar("T")


class PerRow(ABC, Generic[T]):
    """Found when first asked for; `snapshot.part(...)` of a class of these is the one of a what-if."""

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
