"""Indexes of snapshot rows: kinds of nodes, and cached results per row."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from typing import Generic, TypeVar

import numpy as np

from reconciler.fleet.occupancy import NodePods
from reconciler.fleet.rows import Counts, Mask
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model import names
from reconciler.model.cluster.node import Node

# --- Owner of each row's kind, which is the pool and instance type of its node, to count the nodes of a mask by kind.
#
# A kind is text such as `a100 p4d.24xlarge`, so that messages can show which nodes were counted.

_LABELS = (names.KARPENTER_POOL, names.POOL, names.INSTANCE_TYPE)


class NodeKinds:
    """`snapshot.part(NodeKinds)` returns the instance of a snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._rows = snapshot.rows
        self._version = -1
        self._names: list[str] = []
        self._of_row: Counts = np.zeros(0, np.int64)

    def counted(self, mask: Mask) -> dict[str, int]:
        """Counts by kind of the rows of a mask, all of which have nodes."""
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
    """Pool and instance type of the node."""
    return f"{node.pool or 'no pool'} {node.instance_type}".rstrip()


# --- Owner of a cached value per row, valid while the node and its observed pods are the same objects.

T = TypeVar("T")


class PerRow(ABC, Generic[T]):
    """Computed at first use; `snapshot.part(...)` of a subclass returns the instance of a snapshot."""

    def __init__(self, fleet: Snapshot) -> None:
        self.fleet = fleet
        self._nodes, self._pods = fleet.rows.nodes, fleet.observed_on
        self._known: dict[int, tuple[Node | None, NodePods, T]] = {}

    @abstractmethod
    def find(self, row: int) -> T:
        """Must depend only on the node, its observed pods, and their classes."""

    def of(self, row: int) -> T:
        """The cached value; the same object while the row is unchanged."""
        known = self._known.get(row)
        if known is None or known[0] is not self._nodes[row] or known[1] is not self._pods[row]:
            known = self._known[row] = self._nodes[row], self._pods[row], self.find(row)
        return known[2]

    def all(self, rows: Iterable[int]) -> list[T]:
        """The cached values of many rows."""
        known, nodes, pods, of = self._known, self._nodes, self._pods, self.of
        return [
            value[2]
            if (value := known.get(row)) is not None and value[0] is nodes[row] and value[1] is pods[row]
            else of(row)
            for row in rows
        ]
