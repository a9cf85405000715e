"""Owner of the nodes as array rows, and of labels and taints as integers.

All arrays have length `capacity`. The row of a removed node is not alive, and is reused for the next new node. A
`version` identifies one state of labels and taints; it changes with them, and no version is used twice.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reconciler.model.cluster.node import Node, NodeTaint

Mask = NDArray[np.bool_]
Numbers = NDArray[np.int32]
Places = NDArray[np.intp]
Counts = NDArray[np.int64]
ABSENT = -1
NEVER = -2  # the number of a label value that no node has
_FEWEST = 16

_Taints = tuple[tuple[tuple[str, str, str], ...], bool]


class NodeRows:
    """The nodes, one per row."""

    def __init__(self, capacity: int = _FEWEST) -> None:
        self.capacity = max(capacity, _FEWEST)
        self.row_of: dict[str, int] = {}
        self.nodes: list[Node | None] = [None] * self.capacity
        self.alive: Mask = np.zeros(self.capacity, bool)  # rows with a node that accepts pods
        self.standing: Mask = np.zeros(self.capacity, bool)  # those, and vacated rows
        self.taint_group: Numbers = np.zeros(self.capacity, np.int32)
        self.taint_groups: list[tuple[tuple[NodeTaint, ...], bool]] = []  # taints, and whether the nodes are cordoned
        self.version = 0
        self.on_growth: list[Callable[[int], None]] = []
        self._last_version = 0
        self._unused = list(range(self.capacity - 1, -1, -1))
        self._group_of: dict[_Taints, int] = {}
        self._columns: dict[str, Numbers] = {}
        self._values: dict[str, dict[str, int]] = {}
        self._keys: Counter[str] = Counter()  # label keys with their number of nodes
        self._nobodys: Numbers = np.full(self.capacity, ABSENT, np.int32)
        self._sorted: list[str] = []
        self._order: Places | None = None

    @property
    def names(self) -> list[str]:
        """The node name of each row; empty if there is none."""
        return [node.name if node is not None else "" for node in self.nodes]

    @property
    def order(self) -> Places:
        """All rows with a node, by name: independent of insertion order."""
        if self._order is None:
            self._order = np.array([self.row_of[name] for name in self._sorted], np.intp)
        return self._order

    def position(self, name: str) -> int:
        """Index of the node in `order`, or its insertion point."""
        return bisect_left(self._sorted, name)

    def node(self, row: int) -> Node:
        node = self.nodes[row]
        if node is None:
            raise LookupError(f"row {row} has no node")
        return node

    def changed(self) -> None:
        """Marks labels, taints or rows as changed."""
        self._last_version += 1
        self.version = self._last_version

    def add(self, node: Node) -> int:
        """Assigns a row to a new node."""
        if node.name in self.row_of:
            raise LookupError(f"the node {node.name} already exists")
        if not self._unused:
            self._grow()
        row = self._unused.pop()
        self.row_of[node.name] = row
        place = self.position(node.name)
        self._sorted.insert(place, node.name)
        if self._order is not None:
            self._order = np.concatenate((self._order[:place], (row,), self._order[place:]))
        self.alive[row] = self.standing[row] = True
        self._describe(row, node)
        self.changed()
        return row

    def drop(self, row: int) -> None:
        """Removes the node permanently."""
        name = self.node(row).name
        self._keys.subtract(self.node(row).metadata.labels.keys())
        del self.row_of[name]
        place = self.position(name)
        del self._sorted[place]
        if self._order is not None:
            self._order = np.concatenate((self._order[:place], self._order[place + 1 :]))
        self.nodes[row] = None
        self.alive[row] = self.standing[row] = False
        self.taint_group[row] = 0
        for column in self._columns.values():
            column[row] = ABSENT
        self._unused.append(row)
        self.changed()

    def replace(self, row: int, node: Node) -> None:
        """Replaces the node by its new state."""
        if differ(self.node(row), node):
            self._describe(row, node)
            self.changed()
        else:
            self.nodes[row] = node

    def column(self, key: str) -> Numbers:
        """Value numbers of a label for each row; -1 if absent. Must not be modified."""
        mask = self._columns.get(key)
        if mask is None:
            if not self.has_label(key):  # pods may name any number of such labels
                return self._nobodys
            mask = self._columns[key] = np.full(self.capacity, ABSENT, np.int32)
            for row, node in enumerate(self.nodes):
                if node is not None and key in node.metadata.labels:
                    mask[row] = self._number(key, node.metadata.labels[key])
        return mask

    def has_label(self, key: str) -> bool:
        """Whether any node has the label."""
        return self._keys[key] > 0

    def value_id(self, key: str, text: str) -> int:
        """The number of a label value, after `column` was called; NEVER if no node has had the value."""
        return self._values.get(key, {}).get(text, NEVER)

    def values(self, key: str) -> list[str]:
        """The values of a label by number, including those of removed nodes."""
        return list(self._values.get(key, ()))

    def _number(self, key: str, text: str) -> int:
        """Assigns a number at first use."""
        values = self._values.setdefault(key, {})
        return values.setdefault(text, len(values))

    def _describe(self, row: int, node: Node) -> None:
        before, self.nodes[row] = self.nodes[row], node
        labels = node.metadata.labels
        if before is not None:
            self._keys.subtract(before.metadata.labels.keys())
        self._keys.update(labels.keys())
        for key, column in self._columns.items():
            column[row] = self._number(key, labels[key]) if key in labels else ABSENT
        taints = _taints(node)
        group = self._group_of.get(taints)
        if group is None:
            group = self._group_of[taints] = len(self.taint_groups)
            self.taint_groups.append((node.spec.taints, node.spec.unschedulable))
        self.taint_group[row] = group

    def _grow(self) -> None:
        before, self.capacity = self.capacity, self.capacity * 2
        self.nodes += [None] * before
        self._unused += range(self.capacity - 1, before - 1, -1)
        self.alive, self.standing = grown(self.alive, self.capacity), grown(self.standing, self.capacity)
        self.taint_group = grown(self.taint_group, self.capacity)
        self._columns = {key: grown(column, self.capacity, ABSENT) for key, column in self._columns.items()}
        self._nobodys = grown(self._nobodys, self.capacity, ABSENT)
        for each in self.on_growth:
            each(self.capacity)


def grown(array: NDArray[Any], length: int, fill: int = 0) -> NDArray[Any]:
    """The array, extended at the end of its last axis."""
    longer = np.full((*array.shape[:-1], length), fill, array.dtype)
    longer[..., : array.shape[-1]] = array
    return longer


def differ(one: Node, other: Node) -> bool:
    """Whether labels or taints of two states of a node differ for any predicate."""
    return one.metadata.labels != other.metadata.labels or _taints(one) != _taints(other)


def _taints(node: Node) -> _Taints:
    return tuple([(each.key, each.value, each.effect) for each in node.spec.taints]), node.spec.unschedulable
