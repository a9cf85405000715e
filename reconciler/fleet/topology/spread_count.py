"""Owner of how evenly pods are spread over the domains that one kind of pod may be in.

A domain counts if one of its nodes is eligible: it has all labels that the pod's rules name, and the pod could run
there as far as the rule honors its node affinity and the taints. Only pods on eligible nodes count. Beside the counts
stands how many domains have each count, so that the least of them is known without looking at all.
"""

import numpy as np

from reconciler.fleet.rows import Counts, Mask
from reconciler.fleet.topology.columns import Column
from reconciler.fleet.topology.tally import Tally

_MANY = 64  # flips from which on counting afresh is quicker
_FULL = 2**62  # what rows without the label have, so that nothing more ever fits there


class SpreadCount:
    """A tally's pods by domain, of eligible nodes alone."""

    __slots__ = (
        "_alive",
        "_column",
        "_counts",
        "_eligible",
        "_flips",
        "_nodes",
        "_shares",
        "domains",
        "tally",
        "version",
    )

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        self.version = -1
        self.domains = 0
        self._flips = -1
        self._column = Column(np.zeros(0, np.intp), 0)
        self._eligible: Mask = np.zeros(0, bool)
        self._alive: Mask = self._eligible
        self._counts: Counts = np.zeros(1, np.int64)
        self._nodes: Counts = self._counts  # eligible ones in each domain
        self._shares: dict[int, int] = {}  # how many domains have how many pods

    def renew(self, column: Column, eligible: Mask, version: int) -> None:
        """Counts afresh; `eligible` is true also of nodes that are gone for now."""
        self.version = version
        self._flips = -1
        self._column = column
        self._eligible = eligible
        self._alive = np.zeros(len(eligible), bool)
        size = column.size
        weights = np.where(eligible, self.tally.per_row, 0)
        self._counts = np.bincount(column.ids, weights=weights, minlength=size + 1).astype(np.int64)
        self._counts[size] = _FULL
        self._nodes = np.zeros(size + 1, np.int64)
        self._shares = {}
        self.domains = 0

    def follow(self, alive: Mask, flips: int) -> None:
        """Nodes that came or went; `flips` is how often any has, so that nothing is compared while none has."""
        if flips == self._flips:
            return
        first, self._flips = self._flips < 0, flips
        changed = np.flatnonzero((alive != self._alive) & self._eligible)
        if first or len(changed) > _MANY:
            self._recount(alive)
        else:
            for row in changed.tolist():
                self._flip(row, 1 if alive[row] else -1)
        self._alive = alive.copy()

    def add(self, row: int, count: int) -> None:
        if self._eligible[row]:
            domain = self._column.ids[row]
            before = int(self._counts[domain])
            self._counts[domain] = before + count
            if self._nodes[domain]:
                self._share(before, -1)
                self._share(before + count, 1)

    def least(self, min_domains: int) -> int:
        """How many the domain with the fewest has; none at all while there are fewer domains than there must be."""
        return min(self._shares) if self.domains >= min_domains and self._shares else 0

    def at(self, row: int) -> int:
        return int(self._counts[self._column.ids[row]])

    def has_key(self, row: int) -> bool:
        return bool(self._column.ids[row] < self._column.size)

    def is_eligible(self, row: int) -> bool:
        return bool(self._eligible[row])

    def by_row(self) -> Counts:
        """How many there are in the domain of each row; more than ever fit where it is in none."""
        return self._counts.take(self._column.ids)

    def is_true(self) -> bool:
        afresh = SpreadCount(self.tally)
        afresh.renew(self._column, self._eligible, self.version)
        afresh.follow(self._alive, 0)
        counts = np.array_equal(self._counts, afresh._counts) and np.array_equal(self._nodes, afresh._nodes)
        return counts and (self._shares, self.domains) == (afresh._shares, afresh.domains)

    def _recount(self, alive: Mask) -> None:
        size = self._column.size
        self._nodes = np.bincount(self._column.ids[alive & self._eligible], minlength=size + 1).astype(np.int64)
        counts = self._counts[:size][self._nodes[:size] > 0]
        self.domains = len(counts)
        found = np.bincount(counts)
        self._shares = {share: int(found[share]) for share in np.flatnonzero(found).tolist()}

    def _flip(self, row: int, change: int) -> None:
        domain = self._column.ids[row]
        before = int(self._nodes[domain])
        self._nodes[domain] = before + change
        if not before or not before + change:
            self.domains += change
            self._share(int(self._counts[domain]), change)

    def _share(self, count: int, change: int) -> None:
        now = self._shares.get(count, 0) + change
        if now:
            self._shares[count] = now
        else:
            del self._shares[count]
