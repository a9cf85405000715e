"""Owner of the nodes as rows of arrays, and of their labels and taints as numbers.

All arrays are `capacity` long. A row whose node is gone is not alive, and is given to the next node that comes. With
each `version` goes one content of what static predicates look at: it changes with it, and no value ever means another.
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
NEVER = -2  # the number of a value that no node has
_FEWEST = 16

_Taints = tuple[tuple[tuple[str, str, str], ...], bool]


class NodeRows:
    """The nodes, one a row."""

    def __init__(self, capacity: int = _FEWEST) -> None:
        self.capacity = max(capacity, _FEWEST)
        self.row_of: dict[str, int] = {}
        self.nodes: list[Node | None] = [None] * self.capacity
        self.alive: Mask = np.zeros(self.capacity, bool)  # rows with a node on which something may be placed
        self.standing: Mask = np.zeros(self.capacity, bool)  # and those that were only vacated
        self.taint_group: Numbers = np.zeros(self.capacity, np.int32)
        self.taint_groups: list[tuple[tuple[NodeTaint, ...], bool]] = []  # taints, and whether the nodes are cordoned
        self.version = 0
        self.on_growth: list[Callable[[int], None]] = []
        self._last_version = 0
        self._unused = list(range(self.capacity - 1, -1, -1))
        self._group_of: dict[_Taints, int] = {}
        self._columns: dict[str, Numbers] = {}
        self._values: dict[str, dict[str, int]] = {}
        self._keys: Counter[str] = Counter()  # labels, and how many nodes have each
        self._nobodys: Numbers = np.full(self.capacity, ABSENT, np.int32)
        self._sorted: list[str] = []
        self._order: Places | None = None

    @property
    def names(self) -> list[str]:
        """The name of each row's node; nothing where there is none."""
        return [node.name if node is not None else "" for node in self.nodes]

    @property
    def order(self) -> Places:
        """All rows that have a node, by its name: an order that does not depend on who came first."""
        if self._order is None:
            self._order = np.array([self.row_of[name] for name in self._sorted], np.intp)
        return self._order

    def position(self, name: str) -> int:
        """Where in `order` the node is, or would be."""
        return bisect_left(self._sorted, name)

    def node(self, row: int) -> Node:
        node = self.nodes[row]
        if node is None:
            raise LookupError(f"row {row} has no node")
        return node

    def changed(self) -> None:
        """Labels, taints or rows are no longer what they were."""
        self._last_version += 1
        self.version = self._last_version

    def add(self, node: Node) -> int:
        """A row for a node that has none."""
        if node.name in self.row_of:
            raise LookupError(f"there is a node {node.name} already")
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
        """The node is gone for good."""
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
        """The same node, as it is now."""
        if differ(self.node(row), node):
            self._describe(row, node)
            self.changed()
        else:
            self.nodes[row] = node

    def column(self, key: str) -> Numbers:
        """The number of each row's value of a label; -1 where it is not set. Not to be changed."""
        mask = self._columns.get(key)
        if mask is None:
            if not self.has_label(key):  # of such labels pods may name as many as they like
                return self._nobodys
            mask = self._columns[key] = np.full(self.capacity, ABSENT, np.int32)
            for row, node in enumerate(self.nodes):
                if node is not None and key in node.metadata.labels:
                    mask[row] = self._number(key, node.metadata.labels[key])
        return mask

    def has_label(self, key: str) -> bool:
        """Whether a node has the label."""
        return self._keys[key] > 0

    def value_id(self, key: str, text: str) -> int:
        """The number of a value of a label, once its column was asked for; NEVER where no node has had it."""
        return self._values.get(key, {}).get(text, NEVER)

    def values(self, key: str) -> list[str]:
        """The values of a label by their numbers, those of nodes that are gone included."""
        return list(self._values.get(key, ()))

    def _number(self, key: str, text: str) -> int:
        """Given at first sight."""
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
    """The array with room for more at its end (of the last axis)."""
    longer = np.full((*array.shape[:-1], length), fill, array.dtype)
    longer[..., : array.shape[-1]] = array
    return longer


def differ(one: Node, other: Node) -> bool:
    """Whether a predicate might tell two sightings of a node apart by labels or taints."""
    return one.metadata.labels != other.metadata.labels or _taints(one) != _taints(other)


def _taints(node: Node) -> _Taints:
    return tuple([(each.key, each.value, each.effect) for each in node.spec.taints]), node.spec.unschedulable
