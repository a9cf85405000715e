"""Owner of how many pods that are alike to some term there are, by row and by domain."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from reconciler.fleet.rows import Counts, grown
from reconciler.fleet.topology.columns import Column


class View(Protocol):
    """A tally's pods, counted by domain. It is made again where the rows have another version than it was made for."""

    version: int

    def add(self, row: int, count: int) -> None: ...

    def is_true(self) -> bool:
        """Whether counting afresh would find the same."""


class Tally:
    """Pods by row; its views are kept up with it while the rows stay what they are."""

    __slots__ = ("per_row", "views")

    def __init__(self, capacity: int) -> None:
        self.per_row: NDArray[np.int32] = np.zeros(capacity, np.int32)
        self.views: list[View] = []

    def include(self, places: dict[int, int]) -> None:
        """The pods of one more class, by row."""
        if places:
            rows = np.fromiter(places.keys(), np.intp, len(places))
            self.per_row[rows] += np.fromiter(places.values(), np.int32, len(places))

    def add(self, row: int, count: int, version: int) -> None:
        """Pods that came, or went if the count is below 0."""
        self.per_row[row] += count
        for view in self.views:
            if view.version == version:
                view.add(row, count)

    def grow(self, capacity: int) -> None:
        """Room for more rows. The rows have another version then, so that views are made again."""
        self.per_row = grown(self.per_row, capacity)


class DomainCount:
    """A tally's pods by the values of one label of nodes; those on nodes without the label are in no domain."""

    __slots__ = ("column", "counts", "key", "tally", "title", "total", "version")

    def __init__(self, tally: Tally, key: str, title: str) -> None:
        self.tally = tally
        self.key = key
        self.title = title  # whom it counts, for people
        self.version = -1
        self.total = 0
        self.column = Column(np.zeros(0, np.intp), 0)
        self.counts: Counts = np.zeros(1, np.int64)

    def renew(self, column: Column, version: int) -> None:
        """Counts afresh."""
        self.version = version
        self.column = column
        counted = np.bincount(column.ids, weights=self.tally.per_row, minlength=column.size + 1)
        self.counts = counted.astype(np.int64)
        self.counts[column.size] = 0
        self.total = int(self.counts.sum())

    def add(self, row: int, count: int) -> None:
        domain = self.column.ids[row]
        if domain < self.column.size:
            self.counts[domain] += count
            self.total += count

    def at(self, row: int) -> int:
        """How many there are in the domain of a row; none where it is in no domain."""
        return int(self.counts[self.column.ids[row]])

    def has_key(self, row: int) -> bool:
        return bool(self.column.ids[row] < self.column.size)

    def by_row(self) -> Counts:
        """How many there are in the domain of each row."""
        return self.counts.take(self.column.ids)

    def is_true(self) -> bool:
        afresh = DomainCount(self.tally, self.key, self.title)
        afresh.renew(self.column, self.version)
        return self.total == afresh.total and np.array_equal(self.counts, afresh.counts)
