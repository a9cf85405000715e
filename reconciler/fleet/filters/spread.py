"""Pods that must be spread evenly: topology spread constraints that may not be left unmet (DoNotSchedule).

A node will do if its domain would then have at most `maxSkew` pods more than the domain that has the fewest, and if
it has the label that tells the domain. Domains are those of eligible nodes (see topology/spread_count.py); with fewer
of them than `minDomains` the fewest counts as none. Pods of the same namespace count, those that are being deleted
don't.
"""

from typing import ClassVar

import msgspec
import numpy as np

from reconciler.fleet.filters.selection import Selection
from reconciler.fleet.filters.taints import TaintFilter
from reconciler.fleet.obstacles import SpreadDomainsTooFew, SpreadLabelAbsent, SpreadUneven, SpreadUnevenBeside
from reconciler.fleet.pod_class import PodClass
from reconciler.fleet.rows import Mask
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.fleet.topology.columns import DomainColumn
from reconciler.fleet.topology.eligible import Asker
from reconciler.fleet.topology.spread_count import SpreadCount
from reconciler.fleet.topology.term_counts import Counting
from reconciler.fleet.topology.terms import SpreadRule
from reconciler.model import names
from reconciler.model.cluster.node import NodeTaint
from reconciler.model.obstacle import Obstacle

_OF_A_DRAIN = NodeTaint(names.DRAINING, "NoSchedule")  # that a vacated node bears


class _Bound:
    """A rule of a class, and the count that it asks for; classes with the same eligible nodes share it."""

    __slots__ = ("asker", "count", "pod_class", "rule")

    def __init__(self, rule: SpreadRule, asker: Asker, count: SpreadCount, pod_class: PodClass) -> None:
        self.rule = rule
        self.asker = asker
        self.count = count
        self.pod_class = pod_class


class SpreadFilter:
    """The pods that are booked, by the domains of their nodes."""

    name: ClassVar[str] = "spread"
    static: ClassVar[bool] = False

    def __init__(self, fleet: Snapshot) -> None:
        self._counting = fleet.part(Counting)
        self._epoch = -1
        self._bound: dict[int, tuple[_Bound, ...]] = {}
        self._counts: dict[object, SpreadCount] = {}

    def concerns(self, pod_class: PodClass, fleet: Snapshot) -> bool:
        return bool(self._constraints(pod_class, fleet))

    def mask(self, pod_class: PodClass, fleet: Snapshot) -> Mask | None:
        mask: Mask | None = None
        for each in self._constraints(pod_class, fleet):
            count = self._fresh(each, fleet)
            even = count.at_most(_most(each.rule, count))
            mask = even if mask is None else np.logical_and(mask, even, out=mask)
        return mask

    def fits(self, pod_class: PodClass, row: int, fleet: Snapshot) -> bool:
        for each in self._constraints(pod_class, fleet):
            count = self._fresh(each, fleet)
            if count.at(row) > _most(each.rule, count):
                return False
        return True

    def why(self, pod_class: PodClass, row: int, fleet: Snapshot) -> Obstacle:
        for each in self._constraints(pod_class, fleet):
            rule, count = each.rule, self._fresh(each, fleet)
            if not count.has_key(row):
                return SpreadLabelAbsent(rule.key)
            if count.at(row) > _most(rule, count):
                value = fleet.rows.node(row).metadata.labels[rule.key]
                here, selector = count.at(row), str(rule.matcher)
                if count.domains < rule.min_domains:
                    return SpreadDomainsTooFew(
                        rule.key, value, here, selector, count.domains, rule.min_domains, rule.max_skew
                    )
                return SpreadUneven(rule.key, value, here, selector, count.least(rule.min_domains), rule.max_skew)
        raise LookupError("it fits")

    def uneven_beside(self, newcomers: int, pod_class: PodClass, row: int, fleet: Snapshot) -> Obstacle | None:
        """Why it can't join pods of its namespace that are to come to a node, where a rule means all pods of it.

        For such a rule the scheduler counts nobody, and yet it counts those that are to come.
        """
        for each in self._constraints(pod_class, fleet):
            rule, count = each.rule, self._fresh(each, fleet)
            if not newcomers or not rule.means_all or not count.is_eligible(row):
                continue
            least = newcomers if count.domains == 1 >= rule.min_domains else 0
            if newcomers + rule.own - least > rule.max_skew:
                value = fleet.rows.node(row).metadata.labels[rule.key]
                return SpreadUnevenBeside(rule.key, value, newcomers, rule.max_skew)
        return None

    def _constraints(self, pod_class: PodClass, fleet: Snapshot) -> tuple[_Bound, ...]:
        counting = self._counting
        counting.catch_up(fleet)
        if self._epoch != counting.epoch:
            self._epoch = counting.epoch
            self._bound.clear()
            self._counts.clear()
        terms = counting.terms(pod_class)
        if terms is None or not terms.spread:
            return ()
        bounds = self._bound.get(pod_class.number)
        if bounds is None:
            keys = tuple(sorted({rule.key for rule in terms.spread}))
            bounds = tuple(self._bind(rule, keys, pod_class) for rule in terms.spread)
            self._bound[pod_class.number] = bounds
        return bounds

    def _bind(self, rule: SpreadRule, keys: tuple[str, ...], pod_class: PodClass) -> _Bound:
        needs = pod_class.needs
        honored = [needs.selector, needs.terms] if rule.honors_affinity else None
        borne = needs.tolerations if rule.honors_taints else None
        leaves_out = rule.honors_taints and not needs.tolerance.bears(_OF_A_DRAIN)
        asker = Asker(rule.key, keys, msgspec.json.encode([honored, borne], order="sorted"), leaves_out)
        spread_count = self._counts.get((rule.matcher, asker))
        if spread_count is None:
            spread_count = SpreadCount(self._counting.tally((rule.matcher,), staying=True))
            spread_count.tally.views.append(spread_count)
            self._counts[rule.matcher, asker] = spread_count
        return _Bound(rule, asker, spread_count, pod_class)

    def _fresh(self, bound: _Bound, fleet: Snapshot) -> SpreadCount:
        count, rows = bound.count, fleet.rows
        if not count.is_fresh(rows.version):
            eligible = self._counting.eligibles.of(bound.asker, rows, lambda: self._eligible(bound, fleet))
            count.renew(eligible, rows.version)
        return count

    def _eligible(self, bound: _Bound, fleet: Snapshot) -> tuple[DomainColumn, Mask]:
        """Nodes whose domains and pods count, whether or not they are gone for now."""
        result: Mask = np.ones(fleet.rows.capacity, bool)
        for key in bound.asker.keys:
            result &= self._counting.column(key, fleet).with_key
        honored: list[Mask | None] = []
        if bound.rule.honors_affinity:
            honored.append(fleet.part(Selection).mask(bound.pod_class, fleet))
        if bound.rule.honors_taints:
            honored.append(fleet.part(TaintFilter).mask(bound.pod_class, fleet))
        for mask in honored:
            if mask is not None:
                result &= mask
        return self._counting.column(bound.rule.key, fleet), result


def _most(rule: SpreadRule, count: SpreadCount) -> int:
    """How many pods the domain of a node may have for one more of the class to go there."""
    return rule.max_skew + count.least(rule.min_domains) - rule.own
