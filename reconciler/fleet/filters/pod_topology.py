"""Predicates for other pods: inter-pod affinity and anti-affinity, and topology spread constraints."""

from typing import ClassVar

import msgspec
import numpy as np

from reconciler.fleet.filters.node import Selection, TaintFilter
from reconciler.fleet.obstacles import (
    AffinityLabelAbsent,
    AffinityUnmet,
    AntiAffinity,
    NamespacesUnread,
    RepelledByOthers,
    SpreadDomainsTooFew,
    SpreadLabelAbsent,
    SpreadUneven,
    SpreadUnevenBeside,
    TermsBeyondBound,
)
from reconciler.fleet.pod_classes import PodClass
from reconciler.fleet.rows import Mask
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.fleet.topology.columns import Asker, DomainColumn
from reconciler.fleet.topology.spread_count import SpreadCount
from reconciler.fleet.topology.term_counts import Counting, DomainCount
from reconciler.fleet.topology.terms import MOST_PAIRS, PodAffinityTerms, SpreadRule
from reconciler.model import names
from reconciler.model.cluster.node import NodeTaint
from reconciler.model.plan.decision import Obstacle

# --- Required pod affinity and anti-affinity, in both directions.
#
# Terms refer to domains: nodes with the same value of a label. For affinity, the domain of each term must have a pod
# that matches all affinity terms at once, on a node with all the labels; only the first of pods that match their own
# terms may go anywhere. For anti-affinity, no domain may have a pod that matches one of the terms, nor a pod whose
# anti-affinity matches the new pod. Pods that are being deleted count until they are gone.

_Counts = tuple[DomainCount, ...]


class _Own:
    """The pod counts for a class' own terms."""

    __slots__ = ("apart", "first_of_its_kind", "near", "unread")

    def __init__(self, near: _Counts, apart: _Counts) -> None:
        self.near = near
        self.apart = apart
        self.first_of_its_kind = False
        self.unread = ""  # why the terms cannot be evaluated


_NOTHING = _Own((), ())
_BEYOND = _Own((), ())
_BEYOND.unread = "beyond"


class InterPod:
    """Booked pods by domain."""

    name: ClassVar[str] = "interpod"
    static: ClassVar[bool] = False

    def __init__(self, fleet: Snapshot) -> None:
        self._counting = fleet.part(Counting)
        self._epoch = -1
        self._own: dict[int, _Own] = {}

    def concerns(self, pod_class: PodClass, fleet: Snapshot) -> bool:
        own = self._own_terms(pod_class, fleet)
        if own is not _NOTHING:
            return True
        if self._counting.is_idle:
            return False
        return any(self._counting.fresh(each, fleet).total for each in self._repelling(pod_class))

    def mask(self, pod_class: PodClass, fleet: Snapshot) -> Mask | None:
        own = self._own_terms(pod_class, fleet)
        if own.unread:
            return np.zeros(fleet.rows.capacity, bool)
        mask: Mask | None = self._near_mask(own.near, own.first_of_its_kind, fleet) if own.near else None
        for each in (*own.apart, *self._repelling(pod_class)):
            if self._counting.fresh(each, fleet).total:
                free: Mask = ~each.somewhere()
                mask = free if mask is None else np.logical_and(mask, free, out=mask)
        return mask

    def fits(self, pod_class: PodClass, row: int, fleet: Snapshot) -> bool:
        own = self._own_terms(pod_class, fleet)
        if own.unread or (own.near and self._why_not_near(own, row, fleet)):
            return False
        return not (own.apart and self._met(own.apart, row, fleet)) and not self._met(
            self._repelling(pod_class), row, fleet
        )

    def why(self, pod_class: PodClass, row: int, fleet: Snapshot) -> Obstacle:
        own = self._own_terms(pod_class, fleet)
        if own is _BEYOND:
            return TermsBeyondBound(MOST_PAIRS)
        if own.unread:
            return NamespacesUnread(own.unread)
        if own.near and (missing := self._why_not_near(own, row, fleet)):
            return missing
        for each in own.apart:
            if self._met((each,), row, fleet):
                return AntiAffinity(_domain(each, row, fleet), each.at(row), each.title)
        for each in self._repelling(pod_class):
            if self._met((each,), row, fleet):
                return RepelledByOthers(_domain(each, row, fleet), each.at(row), each.title)
        raise LookupError("the pod fits")

    def _own_terms(self, pod_class: PodClass, fleet: Snapshot) -> _Own:
        counting = self._counting
        counting.catch_up(fleet)
        if self._epoch != counting.epoch:
            self._epoch = counting.epoch
            self._own.clear()
        if counting.is_beyond(pod_class):
            return _BEYOND
        terms = counting.terms(pod_class)
        if terms is None:
            return _NOTHING
        own = self._own.get(pod_class.number)
        if own is None:
            own = self._own[pod_class.number] = self._bind(pod_class, terms)
        return own

    def _bind(self, pod_class: PodClass, terms: PodAffinityTerms) -> _Own:
        if not terms.near and not terms.apart:
            return _NOTHING
        matchers = tuple(dict.fromkeys(each.matcher for each in terms.near))
        near = [self._counting.count(matchers, key) for key in dict.fromkeys(each.key for each in terms.near)]
        apart = [self._counting.count((each.matcher,), each.key) for each in dict.fromkeys(terms.apart)]
        own = _Own(tuple(near), tuple(apart))
        own.first_of_its_kind = terms.first_of_its_kind(pod_class.pod, self._counting.namespaces)
        own.unread = self._counting.namespaces.unread if terms.asks_namespaces else ""
        return own

    def _repelling(self, pod_class: PodClass) -> _Counts:
        return () if self._counting.is_idle else self._counting.repelling(pod_class)

    def _met(self, counts: _Counts, row: int, fleet: Snapshot) -> bool:
        """Whether one of the counts is positive in the domain of the row."""
        return any(self._counting.fresh(each, fleet).total and each.at(row) for each in counts)

    def _near_mask(self, near: _Counts, first_of_its_kind: bool, fleet: Snapshot) -> Mask:
        mask: Mask = np.ones(fleet.rows.capacity, bool)
        if not all(fleet.rows.has_label(each.key) for each in near):
            mask[:] = False
            return mask
        counts = [self._counting.fresh(each, fleet) for each in near]
        anywhere = first_of_its_kind and not any(each.total for each in counts)
        for each in counts:
            mask &= each.column.with_key if anywhere else each.somewhere()
        return mask

    def _why_not_near(self, own: _Own, row: int, fleet: Snapshot) -> Obstacle | None:
        labels = fleet.rows.node(row).metadata.labels
        for each in own.near:
            if each.key not in labels:
                return AffinityLabelAbsent(each.key)
        counts = [self._counting.fresh(each, fleet) for each in own.near]
        if own.first_of_its_kind and not any(each.total for each in counts):
            return None
        lacking = next((each for each in counts if not each.at(row)), None)
        return None if lacking is None else AffinityUnmet(_domain(lacking, row, fleet), lacking.title)


def _domain(count: DomainCount, row: int, fleet: Snapshot) -> str:
    return f"{count.key}={fleet.rows.node(row).metadata.labels.get(count.key, '')}"


# --- Topology spread constraints with whenUnsatisfiable: DoNotSchedule.
#
# A node passes if its domain would then have at most `maxSkew` pods more than the domain with the fewest, and if the
# node has the topology label. Domains are those of eligible nodes (see topology/spread_count.py); with fewer domains
# than `minDomains`, the minimum counts as 0. Pods of the same namespace count, except those that are being deleted.

_OF_A_DRAIN = NodeTaint(names.DRAINING, "NoSchedule")  # the taint of a vacated node


class _Bound:
    """A rule of a class and its counts; classes with the same eligible nodes share counts."""

    __slots__ = ("asker", "count", "pod_class", "rule")

    def __init__(self, rule: SpreadRule, asker: Asker, count: SpreadCount, pod_class: PodClass) -> None:
        self.rule = rule
        self.asker = asker
        self.count = count
        self.pod_class = pod_class


class SpreadFilter:
    """Booked pods by domain."""

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
        raise LookupError("the pod fits")

    def uneven_beside(self, newcomers: int, pod_class: PodClass, row: int, fleet: Snapshot) -> Obstacle | None:
        """The obstacle beside nominated pods of the namespace, for a rule with an empty selector.

        For such a rule the scheduler counts no existing pods, but it does count nominated ones.
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
        """Nodes whose domains and pods count, including nodes that are vacated."""
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
    """Maximum number of pods in a node's domain that allows one more pod of the class."""
    return rule.max_skew + count.least(rule.min_domains) - rule.own
