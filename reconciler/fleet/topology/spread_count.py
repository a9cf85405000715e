"""Owner of how evenly pods are spread over the domains that one kind of pod may be in.

A domain counts if one of its nodes is eligible and not gone: the node has all labels that the pod's rules name, and the
pod could run there as far as the rule honors its node affinity and the taints. Only pods on eligible nodes count; a
node that is gone has none. So only domains with pods need to be counted: if there are more that count than those, the
least that a domain has is none. Beside the counts stands how many domains have each count, so that the least of them
is known without looking at all.
"""

from collections import Counter

import numpy as np

from reconciler.fleet.rows import Counts, Mask
from reconciler.fleet.topology.columns import NOBODY, EligibleNodes
from reconciler.fleet.topology.term_counts import PodTally, change

_FULL = 2**62  # what rows without the label have, so that nothing more ever fits there


class SpreadCount:
    """A tally's pods by domain, of eligible nodes alone."""

    __slots__ = ("_counts", "_eligible", "_shares", "tally", "version")

    def __init__(self, tally: PodTally) -> None:
        self.tally = tally
        self.version = -1
        self._eligible = NOBODY
        self._counts: dict[int, int] = {}  # of domains that have some
        self._shares: dict[int, int] = {}  # how many domains have how many pods, of those that have some

    @property
    def domains(self) -> int:
        """How many count."""
        return self._eligible.domains

    def is_fresh(self, version: int) -> bool:
        """Whether it was made for the rows as they are."""
        return self.version == version and self._eligible.is_kept

    def renew(self, eligible: EligibleNodes, version: int) -> None:
        """Counts afresh."""
        self.version = version
        self._eligible = eligible
        self._counts = self.tally.by_domain(eligible.column, eligible.counted)
        self._shares = dict(Counter(self._counts.values()))

    def add(self, row: int, count: int) -> None:
        eligible = self._eligible
        if eligible.counted[row]:
            now = change(self._counts, eligible.column.of_row[row], count)
            if now != count:
                change(self._shares, now - count, -1)
            if now:
                change(self._shares, now, 1)

    def least(self, min_domains: int) -> int:
        """How many the domain with the fewest has; none at all while there are fewer domains than there must be."""
        domains = self._eligible.domains
        return min(self._shares) if domains >= min_domains and 0 < domains <= len(self._counts) else 0

    def at(self, row: int) -> int:
        domain = self._eligible.column.of_row[row]
        return self._counts.get(domain, 0) if domain < self._eligible.column.size else _FULL

    def has_key(self, row: int) -> bool:
        return self._eligible.column.has_key(row)

    def is_eligible(self, row: int) -> bool:
        return bool(self._eligible.counted[row])

    def at_most(self, most: int) -> Mask:
        """The rows whose domain has no more than that; not those that are in none. A new array."""
        column = self._eligible.column
        counts: Counts = np.zeros(column.size + 1, np.int64)
        counts[list(self._counts)] = list(self._counts.values())
        counts[column.size] = _FULL
        even: Mask = counts <= most
        return even.take(column.ids)

    def is_true(self) -> bool:
        counts = self.tally.by_domain(self._eligible.column, self._eligible.counted)
        return (self._counts, self._shares) == (counts, Counter(counts.values()))
