"""Owner of how many pods alike to some term there are, by domain; what it keeps grows with those pods alone."""

from typing import Protocol

import numpy as np

from reconciler.fleet.rows import Mask
from reconciler.fleet.topology.columns import NOWHERE, DomainColumn


class DomainView(Protocol):
    """A tally's pods, counted by domain. It is made again where the rows have another version than it was made for."""

    version: int

    def add(self, row: int, count: int) -> None: ...

    def is_true(self) -> bool:
        """Whether counting afresh would find the same."""


class PodTally:
    """Pods by row, class by class; its views are kept up with them while the rows stay what they are."""

    __slots__ = ("_places", "views")

    def __init__(self) -> None:
        self._places: list[dict[int, int]] = []
        self.views: list[DomainView] = []

    def include(self, places: dict[int, int]) -> None:
        """The pods of one more class, by row: where they are now, and wherever they will be."""
        self._places.append(places)

    def tell(self, row: int, count: int, version: int) -> None:
        """Pods that came, or went if the count is below 0."""
        for view in self.views:
            if view.version == version:
                view.add(row, count)

    def by_row(self) -> dict[int, int]:
        """How many there are on each row that has some."""
        result: dict[int, int] = {}
        for places in self._places:
            for row, count in places.items():
                result[row] = result.get(row, 0) + count
        return result

    def by_domain(self, column: DomainColumn, counted: bytes | None = None) -> dict[int, int]:
        """How many there are in each domain that has some, of rows that are `counted` (a byte each; None: all)."""
        result: dict[int, int] = {}
        domains, nowhere = column.of_row, column.size
        for places in self._places:
            for row, count in places.items():
                domain = domains[row]
                if domain != nowhere and (counted is None or counted[row]):
                    result[domain] = result.get(domain, 0) + count
        return result


class DomainCount:
    """A tally's pods by the values of one label of nodes; those on nodes without the label are in no domain."""

    __slots__ = ("_counts", "column", "key", "tally", "title", "total", "version")

    def __init__(self, tally: PodTally, key: str, title: str) -> None:
        self.tally = tally
        self.key = key
        self.title = title  # whom it counts, for people
        self.version = -1
        self.total = 0
        self.column = NOWHERE
        self._counts: dict[int, int] = {}  # of domains that have some

    def renew(self, column: DomainColumn, version: int) -> None:
        """Counts afresh."""
        self.version = version
        self.column = column
        self._counts = self.tally.by_domain(column)
        self.total = sum(self._counts.values())

    def add(self, row: int, count: int) -> None:
        domain = self.column.of_row[row]
        if domain < self.column.size:
            change(self._counts, domain, count)
            self.total += count

    def at(self, row: int) -> int:
        """How many there are in the domain of a row; none where it is in no domain."""
        return self._counts.get(self.column.of_row[row], 0)

    def has_key(self, row: int) -> bool:
        return self.column.has_key(row)

    def somewhere(self) -> Mask:
        """The rows whose domain has some; a new array."""
        mask: Mask = np.zeros(self.column.size + 1, bool)
        mask[list(self._counts)] = True
        return mask.take(self.column.ids)

    def is_true(self) -> bool:
        counts = self.tally.by_domain(self.column)
        return (self._counts, self.total) == (counts, sum(counts.values()))


def change(counts: dict[int, int], of: int, count: int) -> int:
    """Counts more of one thing, or fewer if the count is below 0; how many there are now. None is not kept."""
    now = counts.get(of, 0) + count
    if now:
        counts[of] = now
    else:
        del counts[of]
    return now
