"""Pods that must be near others, or away from them: required pod affinity and anti-affinity, in both directions.

Near means in the same domain: on nodes with the same value of a label. A pod must be near one that meets all its
affinity terms at once, in the domain of each term, on a node that has each label; only the first of pods that are
near their own kind may go anywhere. It must not be in a domain with a pod that one of its anti-affinity terms means,
nor in one with a pod whose anti-affinity means it. Pods that are being deleted count until they are gone.
"""

from typing import ClassVar

import numpy as np

from reconciler.fleet.obstacles import (
    AffinityLabelAbsent,
    AffinityUnmet,
    AntiAffinity,
    NamespacesUnread,
    RepelledByOthers,
    TermsBeyondBound,
)
from reconciler.fleet.pod_class import PodClass
from reconciler.fleet.rows import Mask
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.fleet.topology.breadth import MOST_PAIRS
from reconciler.fleet.topology.tally import DomainCount
from reconciler.fleet.topology.term_counts import Counting
from reconciler.fleet.topology.terms import PodAffinityTerms
from reconciler.model.obstacle import Obstacle

_Counts = tuple[DomainCount, ...]


class _Own:
    """The counts that a class' own terms ask for."""

    __slots__ = ("apart", "first_of_its_kind", "near", "unread")

    def __init__(self, near: _Counts, apart: _Counts) -> None:
        self.near = near
        self.apart = apart
        self.first_of_its_kind = False
        self.unread = ""  # why its terms can't be judged


_NOTHING = _Own((), ())
_BEYOND = _Own((), ())
_BEYOND.unread = "beyond"


class InterPod:
    """The pods that are booked, by the domains of their nodes."""

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
        raise LookupError("it fits")

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
        """Whether one of the counts has a pod in the domain of the row."""
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
