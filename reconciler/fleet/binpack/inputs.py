"""Inputs of packing: pending pods in groups of equal needs, existing nodes, and the limit on steps."""

from collections.abc import Iterable
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from reconciler.fleet.filters.chain import FilterChain
from reconciler.fleet.filters.node import Ports, ResourceFilter, Selection, TaintFilter
from reconciler.fleet.filters.pod_topology import InterPod, SpreadFilter
from reconciler.fleet.filters.predicate import Predicate
from reconciler.fleet.obstacles import ApartFromRunning, TermLabelAbsent, TermNamespacesUnread
from reconciler.fleet.pod_classes import PodClass
from reconciler.fleet.questions import unmodelled
from reconciler.fleet.rows import Counts, Mask
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.fleet.topology.term_counts import Counting, DomainCount
from reconciler.fleet.topology.terms import Matcher, PodAffinityTerms, SpreadRule
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.decision import Obstacle

in_order = attrgetter("metadata.namespace", "metadata.name", "metadata.uid")
NO_TERMS = PodAffinityTerms()


class PendingPods:
    """The pods of one class, sorted by namespace and name."""

    __slots__ = ("number", "pod_class", "pods", "terms")

    def __init__(self, number: int, pod_class: PodClass, pods: list[Pod]) -> None:
        self.number = number  # dense; independent of the order of the input
        self.pod_class = pod_class
        self.pods = pods
        self.terms = NO_TERMS  # the same object for all classes with equal terms


def by_class(fleet: Snapshot, pods: Iterable[Pod]) -> list[PendingPods]:
    """The pods grouped by class, in the order of the first pod of each class."""
    of = fleet.classes.of
    found: dict[PodClass, list[Pod]] = {}
    for pod in sorted(pods, key=in_order):
        pod_class = of(pod)
        together = found.get(pod_class)
        if together is None:
            found[pod_class] = [pod]
        else:
            together.append(pod)
    moved: dict[PodClass, list[Pod]] = {}
    for pod_class, together in found.items():
        others = moved.setdefault(pod_class.anew, together)
        if others is not together:
            moved[pod_class.anew] = sorted(others + together, key=in_order)
    waiting = [PendingPods(number, pod_class, together) for number, (pod_class, together) in enumerate(moved.items())]
    counting = fleet.part(Counting)
    counting.catch_up(fleet)
    same: dict[PodAffinityTerms, PodAffinityTerms] = {NO_TERMS: NO_TERMS}
    for each in waiting:
        terms = counting.terms(each.pod_class)
        if terms is not None:
            each.terms = same.setdefault(terms, terms)
    return waiting


def requests(waiting: list[PendingPods], columns: list[int]) -> Counts:
    """The requests of each class, for the resources in `columns`."""
    place = np.zeros(max(columns, default=0) + 1, np.intp)
    place[columns] = range(len(columns))
    requested = [each.pod_class.request for each in waiting]
    mask = np.zeros((len(waiting), len(columns)), np.int64)
    flat = np.array(list(chain.from_iterable(chain.from_iterable(requested))), np.int64)
    rows = np.repeat(np.arange(len(waiting)), [len(each) for each in requested])
    mask[rows, place[flat[::2]]] = flat[1::2]
    return mask


def requested_columns(waiting: list[PendingPods]) -> list[int]:
    """The columns of all requested resources."""
    kinds = {tuple([column for column, _ in each.pod_class.request]) for each in waiting}
    return sorted({column for kind in kinds for column in kind})


# --- Owner of the number of steps taken, and of the limit.


class Steps:
    """Checking up to a thousand offers, nodes or classes at once is one step."""

    def __init__(self, most: int | None) -> None:
        self.done = 0
        self._most = most

    def take(self, looked_at: int = 1) -> None:
        """Counts one check of so many items."""
        self.done += 1 + looked_at // 1000

    @property
    def are_spent(self) -> bool:
        return self._most is not None and self.done >= self._most


# --- Existing nodes and pods: which virtual nodes the current fleet allows for a pod, and which pods are in the
# domains.

# These predicates are evaluated here instead, between pending pods and against existing pods.
_JUDGED_HERE = (ResourceFilter, Ports, InterPod, SpreadFilter)


class AffinityCounts(NamedTuple):
    """Existing pods that match an affinity."""

    total: int
    here: dict[str, list[int]]  # label key -> for each virtual node, the number of pods in its domain


class Domains(NamedTuple):
    """The domains of a spread rule, and the existing pods."""

    eligible: Mask  # which virtual nodes are in an eligible domain
    counts: dict[str, int]  # label value -> pods


class ExistingNodes:
    """Predicates of the fleet for virtual nodes; `rows` are their rows, so a fork must be open."""

    def __init__(self, fleet: Snapshot, looks: list[Node], steps: Steps) -> None:
        self.fleet = fleet
        self._steps = steps
        self.rows = np.array([fleet.bring(node) for node in looks], np.intp)
        self._looks = looks
        self._judging = fleet.part(FilterChain)
        self._counting = fleet.part(Counting)
        left_out = tuple(fleet.part(each) for each in _JUDGED_HERE)
        self._others: list[Predicate] = [
            each for each in self._judging.predicates if not each.static and each not in left_out
        ]

    def allowed(self, waiting: list[PendingPods]) -> list[Mask]:
        """For each class, the virtual nodes that existing pods and nodes allow; equal masks are one object."""
        known: dict[object, Mask] = {}
        distinct: dict[bytes, Mask] = {}
        result = []
        for each in waiting:
            key = self.alike(each)
            mask = known.get(key)
            if mask is None:
                self._steps.take(len(self.rows))
                mask = self._unrelated(each, self._judging.static_mask(each.pod_class)[self.rows])
                mask = self._bound(each.pod_class, mask)
                mask = known[key] = distinct.setdefault(mask.tobytes(), mask)
            result.append(mask)
        return result

    def alike(self, each: PendingPods) -> object:
        """A key that is equal for classes with the same results."""
        pod_class = each.pod_class
        has_its_own = _is_bound(pod_class) or bool(pod_class.unmodelled)
        key = pod_class.needs.number, pod_class.label_class.number, id(each.terms)
        return (*key, each.number) if has_its_own else key

    def leave_out(self, looks: Mask) -> None:
        """Excludes virtual nodes from launching."""
        self._left_out = np.zeros(self.fleet.rows.capacity, bool)
        self._left_out[self.rows[looks]] = True

    def near(self, matchers: tuple[Matcher, ...], keys: tuple[str, ...]) -> AffinityCounts:
        """The number of existing pods that match all matchers, in the domains of each virtual node."""
        here, total = {}, 0
        for key in keys:
            count = self._counting.fresh(self._counting.count(matchers, key), self.fleet)
            here[key] = [count.at(row) for row in self.rows.tolist()]
            total += count.total
        return AffinityCounts(total, here)

    def domains(self, rule: SpreadRule, keys: tuple[str, ...], pod_class: PodClass) -> Domains:
        """The domains of a rule of a class whose rules name `keys`."""
        fleet = self.fleet
        eligible: Mask = fleet.rows.alive & ~self._left_out
        for key in keys:
            eligible &= fleet.rows.column(key) >= 0
        selected = fleet.part(Selection).mask(pod_class, fleet) if rule.honors_affinity else None
        borne = fleet.part(TaintFilter).mask(pod_class, fleet) if rule.honors_taints else None
        for mask in (selected, borne):
            if mask is not None:
                eligible &= mask
        column, pods = self._counting.column(rule.key, fleet), self._counting.tally((rule.matcher,), staying=True)
        texts, counts = fleet.rows.values(rule.key), pods.by_domain(column, eligible.tobytes())
        found = {texts[each]: counts.get(each, 0) for each in np.unique(column.ids[eligible]).tolist()}
        return Domains(eligible[self.rows], found)

    def why(self, each: PendingPods, look: int) -> Obstacle | None:
        """Why existing pods or nodes exclude the virtual node; None if they do not."""
        pod_class, row = each.pod_class, int(self.rows[look])
        if obstacle := unmodelled(pod_class, self.fleet):
            return obstacle
        for predicate in self._judging.predicates:
            if predicate.static and not predicate.fits(pod_class, row, self.fleet):
                return predicate.why(pod_class, row, self.fleet)
        for predicate in self._others if _is_bound(pod_class) else ():
            if predicate.concerns(pod_class, self.fleet) and not predicate.fits(pod_class, row, self.fleet):
                return predicate.why(pod_class, row, self.fleet)
        labels = self._looks[look].metadata.labels
        for key in _needed_keys(each):
            if key not in labels:
                return TermLabelAbsent(key)
        if each.terms.asks_namespaces and self._counting.namespaces.unread:
            return TermNamespacesUnread(self._counting.namespaces.unread)
        counts = [] if self._counting.is_idle else self._enemies(each)
        met = next((count for count in counts if self._counting.fresh(count, self.fleet).at(row)), None)
        return None if met is None else ApartFromRunning(met.title)

    def _unrelated(self, each: PendingPods, mask: Mask) -> Mask:
        """Removes virtual nodes with anti-affinity to existing pods, and those without a needed label."""
        if self._counting.is_idle:
            return mask
        if each.terms.asks_namespaces and self._counting.namespaces.unread:
            return np.zeros(len(mask), bool)
        result = mask.copy()
        for key in _needed_keys(each):
            result &= self.fleet.rows.column(key)[self.rows] >= 0
        for count in self._enemies(each):
            if self._counting.fresh(count, self.fleet).total:
                result &= np.array([count.at(row) == 0 for row in self.rows.tolist()], bool)
        return result

    def _bound(self, pod_class: PodClass, mask: Mask) -> Mask:
        """Removes virtual nodes that volumes and devices exclude; most classes have none."""
        if not _is_bound(pod_class):
            return np.zeros(len(mask), bool) if pod_class.unmodelled else mask
        if unmodelled(pod_class, self.fleet):
            return np.zeros(len(mask), bool)
        for predicate in self._others:
            if predicate.concerns(pod_class, self.fleet):
                judged = predicate.mask(pod_class, self.fleet)
                if judged is not None:
                    mask = mask & judged[self.rows]
        return mask

    def _enemies(self, each: PendingPods) -> list[DomainCount]:
        """The pods with anti-affinity to the class, or selected by its anti-affinity."""
        own = [self._counting.count((term.matcher,), term.key) for term in each.terms.apart]
        return own + list(self._counting.repelling(each.pod_class))


def _is_bound(pod_class: PodClass) -> bool:
    return bool(pod_class.pod.spec.volumes or pod_class.pod.spec.resource_claims)


def _needed_keys(each: PendingPods) -> tuple[str, ...]:
    """Labels that a node needs for the evaluation of a pod's terms."""
    return tuple(dict.fromkeys([term.key for term in each.terms.near] + [rule.key for rule in each.terms.spread]))
