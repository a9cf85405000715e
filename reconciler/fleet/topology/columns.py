"""Topology domains of nodes, pod classes by row, and the nodes that are eligible for spreading."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reconciler.fleet.pod_classes import PodClass
from reconciler.fleet.rows import Mask, NodeRows, Numbers
from reconciler.fleet.topology.terms import Matcher, telling


class DomainColumn(NamedTuple):
    """Domain numbers by row. Rows without the label have the extra domain `size`."""

    ids: NDArray[np.intp]
    of_row: list[int]  # as a list, for queries of single rows
    size: int

    def has_key(self, row: int) -> bool:
        return self.of_row[row] < self.size

    @property
    def with_key(self) -> Mask:
        """The rows that have the label."""
        mask: Mask = self.ids < self.size
        return mask


NOWHERE = DomainColumn(np.zeros(0, np.intp), [], 0)


class Columns:
    """Columns for one version of the rows; the rows' own arrays change in place."""

    def __init__(self) -> None:
        self._version = -1
        self._found: dict[str, DomainColumn] = {}
        self._nobodys: DomainColumn | None = None  # shared by all labels that no node has

    def of(self, key: str, rows: NodeRows) -> DomainColumn:
        if self._version != rows.version:
            self._version = rows.version
            self._found.clear()
            self._nobodys = None
        if not rows.has_label(key):
            if self._nobodys is None:
                self._nobodys = _column(rows.column(key))
            return self._nobodys
        domain_column = self._found.get(key)
        if domain_column is None:
            domain_column = self._found[key] = _column(rows.column(key))
        return domain_column


def _column(numbers: Numbers) -> DomainColumn:
    size = int(numbers.max(initial=-1)) + 1
    ids = np.where(numbers < 0, size, numbers).astype(np.intp)
    return DomainColumn(ids, ids.tolist(), size)


# --- Owner of the number of pods of each class on each row, indexed by labels.


class PodLocations:
    """Rows by class, and classes by label."""

    def __init__(self) -> None:
        self._places: list[dict[int, int]] = []
        self.classes: list[PodClass] = []
        self._by_label: dict[tuple[str, str], list[PodClass]] = {}

    def learn(self, pod_class: PodClass) -> None:
        """Adds a new class; classes arrive in the order of their numbers."""
        self._places.append({})
        self.classes.append(pod_class)
        for label in pod_class.labels.items():
            self._by_label.setdefault(label, []).append(pod_class)

    def book(self, number: int, row: int, count: int) -> None:
        """Adds pods on a row; a negative count removes pods."""
        places = self._places[number]
        now = places.get(row, 0) + count
        if now:
            places[row] = now
        else:
            del places[row]

    def of(self, pod_class: PodClass) -> dict[int, int]:
        """The number of pods on each row with any. Must not be modified."""
        return self._places[pod_class.number]

    def candidates(self, matchers: tuple[Matcher, ...]) -> Iterator[PodClass]:
        """The classes that a term may select: few, if the term requires certain label values."""
        requirement = telling(matchers)
        if requirement is None:
            yield from self.classes
            return
        for value in requirement.values:
            yield from self._by_label.get((requirement.key, value), ())


# --- Owner of the nodes that count for topology spread: eligible nodes, and their number in each domain.
#
# Eligible nodes are computed once per version of the rows, and shared by all rules of one label with the same eligible
# nodes. An added or removed node is counted once for all these rules.
#
# A vacated node is drained: it still exists, with a taint. It counts for most rules, but not for rules that honor
# taints of pods that do not tolerate the drain taint.


class Asker(NamedTuple):
    """All that determines the eligible nodes of a rule."""

    key: str  # the topology key
    keys: tuple[str, ...]  # of all rules of the class: an eligible node has all of them
    honored: bytes  # the relevant node affinity and tolerations of the pod
    leaves_out_vacated: bool = False


class EligibleNodes:
    """The nodes, including removed ones; all have the topology label."""

    __slots__ = ("_nodes", "column", "counted", "domains", "is_kept", "leaves_out_vacated")

    def __init__(
        self, column: DomainColumn, counted: bytes, nodes: list[int], leaves_out_vacated: bool = False
    ) -> None:
        self.column = column
        self.leaves_out_vacated = leaves_out_vacated
        self.counted = counted  # one byte per row
        self.is_kept = True  # updated as nodes are added and removed
        self.domains = sum(map(bool, nodes))  # number of domains with a node that is not removed
        self._nodes = nodes  # nodes that are not removed, by domain

    def flip(self, row: int, change: int) -> None:
        """A node was added (1) or removed (-1)."""
        domain = self.column.of_row[row]
        before = self._nodes[domain]
        self._nodes[domain] = before + change
        if not before or not before + change:
            self.domains += change

    def is_true(self, rows: NodeRows) -> bool:
        there = rows.alive if self.leaves_out_vacated else rows.standing
        nodes = _nodes(self.column, np.frombuffer(self.counted, bool) & there)
        return self._nodes == nodes and self.domains == sum(map(bool, nodes))


NOBODY = EligibleNodes(NOWHERE, b"", [])


class Eligibles:
    """The eligible nodes of all rules, for one version of the rows."""

    def __init__(self) -> None:
        self._version = -1
        self._by_asker: dict[Asker, EligibleNodes] = {}
        self._shared: dict[tuple[str, bytes, bool], EligibleNodes] = {}
        self._by_row: dict[int, list[EligibleNodes]] = {}

    def of(self, asker: Asker, rows: NodeRows, find: Callable[[], tuple[DomainColumn, Mask]]) -> EligibleNodes:
        """The eligible nodes; calls `find` if they are unknown."""
        if self._version != rows.version:
            self._version = rows.version
            self._forget()
        eligible_nodes = self._by_asker.get(asker)
        if eligible_nodes is None:
            eligible_nodes = self._by_asker[asker] = self._share(asker, *find(), rows)
        return eligible_nodes

    def flip(self, row: int, change: int) -> None:
        """A node was added (1) or removed (-1)."""
        for each in self._by_row.get(row, ()):
            if not each.leaves_out_vacated:
                each.flip(row, change)

    def flip_vacated(self, row: int, change: int) -> None:
        """A node was vacated (-1), or restored (1)."""
        for each in self._by_row.get(row, ()):
            if each.leaves_out_vacated:
                each.flip(row, change)

    def are_true(self, rows: NodeRows) -> bool:
        """Whether a recount would give the same result."""
        return self._version != rows.version or all(each.is_true(rows) for each in self._shared.values())

    def _share(self, asker: Asker, column: DomainColumn, mask: Mask, rows: NodeRows) -> EligibleNodes:
        counted, leaves_out = mask.tobytes(), asker.leaves_out_vacated
        key = asker.key, counted, leaves_out
        eligible_nodes = self._shared.get(key)
        if eligible_nodes is None:
            nodes = _nodes(column, mask & (rows.alive if leaves_out else rows.standing))
            eligible_nodes = self._shared[key] = EligibleNodes(column, counted, nodes, leaves_out)
            for row in mask.nonzero()[0].tolist():
                self._by_row.setdefault(row, []).append(eligible_nodes)
        return eligible_nodes

    def _forget(self) -> None:
        for each in self._shared.values():
            each.is_kept = False
        for known in (self._by_asker, self._shared, self._by_row):
            known.clear()


def _nodes(column: DomainColumn, living: Mask) -> list[int]:
    """The number of rows in each domain."""
    result: list[int] = np.bincount(column.ids[living], minlength=column.size).tolist()
    return result
