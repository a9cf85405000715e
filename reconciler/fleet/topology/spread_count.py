"""Owner of the pod counts per domain for one spread rule.

A domain counts if one of its nodes is eligible and not removed: the node has all labels that the pod's rules name,
and the pod could run there as far as the rule honors node affinity and taints. Only pods on eligible nodes count; a
removed node has none. Therefore only domains with pods are stored: if there are further domains, the minimum is 0. A
histogram of the counts gives the minimum without a scan.
"""

from collections import Counter

import numpy as np

from reconciler.fleet.rows import Counts, Mask
from reconciler.fleet.topology.columns import NOBODY, EligibleNodes
from reconciler.fleet.topology.term_counts import PodTally, change

_FULL = 2**62  # for rows without the label, where nothing may be added


class SpreadCount:
    """Pods of a tally by domain, on eligible nodes only."""

    __slots__ = ("_counts", "_eligible", "_shares", "tally", "version")

    def __init__(self, tally: PodTally) -> None:
        self.tally = tally
        self.version = -1
        self._eligible = NOBODY
        self._counts: dict[int, int] = {}  # of domains with any pod
        self._shares: dict[int, int] = {}  # pods -> number of domains, for domains with any pod

    @property
    def domains(self) -> int:
        """Number of domains that count."""
        return self._eligible.domains

    def is_fresh(self, version: int) -> bool:
        """Whether the counts are for the current version of the rows."""
        return self.version == version and self._eligible.is_kept

    def renew(self, eligible: EligibleNodes, version: int) -> None:
        """Recounts."""
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
        """The minimum over domains; 0 while there are fewer domains than `min_domains`."""
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
        """The rows whose domain has at most `most` pods, without rows in no domain. A new array."""
        column = self._eligible.column
        counts: Counts = np.zeros(column.size + 1, np.int64)
        counts[list(self._counts)] = list(self._counts.values())
        counts[column.size] = _FULL
        even: Mask = counts <= most
        return even.take(column.ids)

    def is_true(self) -> bool:
        counts = self.tally.by_domain(self._eligible.column, self._eligible.counted)
        return (self._counts, self._shares) == (counts, Counter(counts.values()))
