"""Owner of the tallies: the number of pods that a term selects, or that have a term.

Nothing is counted before the first class with a term appears, so a cluster without inter-pod terms costs nothing.
From then on, each class knows the tallies that include its pods; most have none. A tally is created at its first
query. Tallies are never rolled back: after a fork, they are correct counts of the bookings.
"""

from collections import defaultdict
from collections.abc import Collection
from typing import Protocol

import numpy as np

from reconciler.fleet.pod_classes import PodClass
from reconciler.fleet.rows import Mask
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.fleet.topology.columns import NOWHERE, Columns, DomainColumn, Eligibles, PodLocations
from reconciler.fleet.topology.terms import (
    MOST_PAIRS,
    Breadth,
    Compared,
    Index,
    Matcher,
    Namespaces,
    PodAffinityTerms,
    Term,
    broadened,
    compared,
    terms_of,
)

# --- Owner of the pods that match a term, by domain; memory grows only with those pods.


class DomainView(Protocol):
    """Counts of a tally by domain. Recreated for a new version of the rows."""

    version: int

    def add(self, row: int, count: int) -> None: ...

    def is_true(self) -> bool:
        """Whether a recount would give the same result."""


class PodTally:
    """Pods by row, class by class; updates its views while the rows are unchanged."""

    __slots__ = ("_places", "views")

    def __init__(self) -> None:
        self._places: list[dict[int, int]] = []
        self.views: list[DomainView] = []

    def include(self, places: dict[int, int]) -> None:
        """Adds a class with its current rows, and follows its pods from now on."""
        self._places.append(places)

    def tell(self, row: int, count: int, version: int) -> None:
        """Adds pods on a row; a negative count removes pods."""
        for view in self.views:
            if view.version == version:
                view.add(row, count)

    def by_row(self) -> dict[int, int]:
        """The number of pods on each row with any."""
        result: dict[int, int] = {}
        for places in self._places:
            for row, count in places.items():
                result[row] = result.get(row, 0) + count
        return result

    def by_domain(self, column: DomainColumn, counted: bytes | None = None) -> dict[int, int]:
        """The number of pods in each domain with any, on rows that are `counted` (one byte each; None: all)."""
        result: dict[int, int] = {}
        domains, nowhere = column.of_row, column.size
        for places in self._places:
            for row, count in places.items():
                domain = domains[row]
                if domain != nowhere and (counted is None or counted[row]):
                    result[domain] = result.get(domain, 0) + count
        return result


class DomainCount:
    """Pods of a tally by the values of one node label; nodes without the label are in no domain."""

    __slots__ = ("_counts", "column", "key", "tally", "title", "total", "version")

    def __init__(self, tally: PodTally, key: str, title: str) -> None:
        self.tally = tally
        self.key = key
        self.title = title  # the counted pods, for display
        self.version = -1
        self.total = 0
        self.column = NOWHERE
        self._counts: dict[int, int] = {}  # of domains with any pod

    def renew(self, column: DomainColumn, version: int) -> None:
        """Recounts."""
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
        """The number of pods in the row's domain; 0 if it is in no domain."""
        return self._counts.get(self.column.of_row[row], 0)

    def has_key(self, row: int) -> bool:
        return self.column.has_key(row)

    def somewhere(self) -> Mask:
        """The rows whose domain has any pod; a new array."""
        mask: Mask = np.zeros(self.column.size + 1, bool)
        mask[list(self._counts)] = True
        return mask.take(self.column.ids)

    def is_true(self) -> bool:
        counts = self.tally.by_domain(self.column)
        return (self._counts, self.total) == (counts, sum(counts.values()))


def change(counts: dict[int, int], of: int, count: int) -> int:
    """Adds to a count and returns the new value; a count of 0 is removed."""
    now = counts.get(of, 0) + count
    if now:
        counts[of] = now
    else:
        del counts[of]
    return now


_Key = tuple[tuple[Matcher, ...], bool]  # matchers of a tally, and whether pods that are being deleted are excluded


class Counting:
    """The tallies of one snapshot; callers must call `catch_up` first."""

    def __init__(self, fleet: Snapshot) -> None:
        self.epoch = 0  # changes when all tallies are discarded: cached tallies must be requested again
        self.eligibles = Eligibles()
        self.namespaces = Namespaces.of(fleet.observed)
        self._beyond: frozenset[Compared] = frozenset()  # terms that are not evaluated (terms.py)
        self._bounded = -1  # the observation that the limit was computed for
        self._own: list[PodAffinityTerms | None] = []  # terms by class
        self._compared = 0  # number of these terms
        self._within = 0  # number of classes known to be within the limit together
        self._observed = fleet.observed
        self._forget()
        fleet.listen(self)
        fleet.on_vacated.append(self.eligibles.flip_vacated)

    def catch_up(self, fleet: Snapshot) -> None:
        """Processes new classes and namespaces."""
        if fleet.observed is not self._observed:
            self._observed = fleet.observed
            self._take_note_of(Namespaces.of(fleet.observed))
        if fleet.sightings != self._bounded:
            self._bounded = fleet.sightings
            self._bound(fleet)
        classes = fleet.classes.all
        if len(self._terms) < len(classes):
            for pod_class in classes[len(self._terms) :]:
                self._learn(pod_class)
            if self._somebody_asks and not self._warm:
                self._warm_up(fleet)

    def is_beyond(self, pod_class: PodClass) -> bool:
        """Whether a class has terms that are not evaluated, because its namespace has too many."""
        return bool(self._beyond) and pod_class.number in self._classes_beyond

    def _bound(self, fleet: Snapshot) -> None:
        """Determines the terms that are not evaluated, among the observed pods."""
        classes = fleet.classes
        for pod in fleet.waiting:
            classes.of(pod)
        for pod_class in classes.all[len(self._own) :]:
            terms = terms_of(pod_class.pod)
            self._own.append(terms)
            self._compared += len(compared(pod_class, terms)) if terms is not None else 0
        found: frozenset[Compared] = frozenset()
        if self._compared * len(classes.label_classes) > MOST_PAIRS and len(classes.all) > self._within:
            found = self._beyond_of(classes.all)
            self._within = 0 if found else len(classes.all)
        if found:  # cached terms of removed pods must not count
            rows = fleet.rows.row_of
            there = (pod for pod in fleet.observed.pods if not pod.is_finished and (not pod.node or pod.node in rows))
            found = self._beyond_of({classes.of(pod) for pod in there})
        if found != self._beyond:
            self._beyond = found
            self._forget()

    def _beyond_of(self, classes: Collection[PodClass]) -> frozenset[Compared]:
        own = self._own
        return Breadth(classes).beyond({each: terms for each in classes if (terms := own[each.number]) is not None})

    @property
    def is_idle(self) -> bool:
        """Whether no pod has inter-pod terms."""
        return not self._warm

    def terms(self, pod_class: PodClass) -> PodAffinityTerms | None:
        """The inter-pod terms of a class; None if it has none."""
        return self._terms[pod_class.number]

    def tally(self, matchers: tuple[Matcher, ...], staying: bool = False) -> PodTally:
        """The pods that match all matchers; with `staying`, without pods that are being deleted."""
        key = (matchers, staying)
        pod_tally = self._tallies.get(key)
        if pod_tally is None:
            pod_tally = self._tallies[key] = PodTally()
            self._meaning.add(matchers, key)
            for pod_class in self._whereabouts.candidates(matchers):
                if self._means(key, pod_class):
                    self._feed(pod_tally, pod_class)
        return pod_tally

    def count(self, matchers: tuple[Matcher, ...], key: str) -> DomainCount:
        """The number of matching pods in each domain."""
        domain_count = self._counts.get((matchers, key))
        if domain_count is None:
            domain_count = DomainCount(self.tally(matchers), key, " and ".join(map(str, matchers)))
            domain_count.tally.views.append(domain_count)
            self._counts[matchers, key] = domain_count
        return domain_count

    def repelling(self, pod_class: PodClass) -> tuple[DomainCount, ...]:
        """For each anti-affinity term that selects such pods: the number of pods with the term in each domain."""
        of = pod_class.label_class
        known, domain_counts = self._repelling.get(of.number, (-1, ()))
        if known != len(self._holders):
            domain_counts = tuple(
                self._holders[term]
                for term in self._repellers.candidates(of.labels)
                if term.matcher.repels(of.namespace, of.labels, self.namespaces)
            )
            self._repelling[of.number] = len(self._holders), domain_counts
        return domain_counts

    def fresh(self, count: DomainCount, fleet: Snapshot) -> DomainCount:
        """The same count, for the current version of the rows."""
        if count.version != fleet.rows.version:
            count.renew(self.column(count.key, fleet), fleet.rows.version)
        return count

    def column(self, key: str, fleet: Snapshot) -> DomainColumn:
        """The domain of each row."""
        return self._columns.of(key, fleet.rows)

    # Listener methods

    def added(self, pod_class: PodClass, row: int, count: int, fleet: Snapshot) -> None:
        if not self._warm:
            return
        number = pod_class.number
        while number >= len(self._terms):
            self._learn(fleet.classes.all[len(self._terms)])
        self._whereabouts.book(number, row, count)
        for tally in self._fed[number]:
            tally.tell(row, count, fleet.rows.version)

    def removed(self, pod_class: PodClass, row: int, count: int, fleet: Snapshot) -> None:
        self.added(pod_class, row, -count, fleet)

    def came(self, row: int, fleet: Snapshot) -> None:
        self.eligibles.flip(row, 1)

    def went(self, row: int, fleet: Snapshot) -> None:
        self.eligibles.flip(row, -1)

    def fingerprint(self, fleet: Snapshot) -> object:
        """Counts that differ from a recount: always empty, for any history."""
        meant = [(str(key), tally, self._numbers_meant(key)) for key, tally in self._tallies.items()]
        held = [(str(term), count.tally, self._numbers_holding(term)) for term, count in self._holders.items()]
        booked = defaultdict[int, dict[int, int]](dict)
        for row in fleet.rows.row_of.values():
            for pod_class, count in fleet.booked_on(row).items():
                booked[pod_class.number][row] = count
        errors = [] if self.eligibles.are_true(fleet.rows) else ["eligible nodes"]
        for name, tally, numbers in meant + held:
            afresh = PodTally()
            for number in numbers & booked.keys():
                afresh.include(booked[number])
            current = [view for view in tally.views if view.version == fleet.rows.version]
            if tally.by_row() != afresh.by_row() or not all(view.is_true() for view in current):
                errors.append(name)
        return sorted(errors)

    # Processing of new classes

    def _forget(self) -> None:
        self.epoch += 1
        self._somebody_asks = False
        self._warm = False
        self._columns = Columns()
        self._whereabouts = PodLocations()
        self._terms: list[PodAffinityTerms | None] = []
        self._classes_beyond: set[int] = set()
        self._fed: list[list[PodTally]] = []
        self._tallies: dict[_Key, PodTally] = {}
        self._meaning: Index[_Key] = Index()
        self._counts: dict[tuple[tuple[Matcher, ...], str], DomainCount] = {}
        self._holders: dict[Term, DomainCount] = {}
        self._repellers: Index[Term] = Index()
        self._repelling: dict[int, tuple[int, tuple[DomainCount, ...]]] = {}

    def _take_note_of(self, namespaces: Namespaces) -> None:
        changed = namespaces != self.namespaces
        self.namespaces = namespaces
        if changed and any(terms is not None and terms.asks_namespaces for terms in self._terms):
            self._forget()

    def _learn(self, pod_class: PodClass) -> None:
        number = pod_class.number
        terms = self._own[number] if number < len(self._own) else terms_of(pod_class.pod)
        if terms is not None and self._beyond and not self._beyond.isdisjoint(compared(pod_class, terms)):
            self._classes_beyond.add(pod_class.number)
            terms = broadened(terms)
        self._somebody_asks |= terms is not None
        self._terms.append(terms)
        self._fed.append([])
        if self._warm:
            self._whereabouts.learn(pod_class)
            self._enter(pod_class)

    def _warm_up(self, fleet: Snapshot) -> None:
        """Starts to track where pods are, at the first class with terms."""
        self._warm = True
        classes = fleet.classes.all[: len(self._terms)]
        for pod_class in classes:
            self._whereabouts.learn(pod_class)
        for row in fleet.rows.row_of.values():
            for pod_class, count in fleet.booked_on(row).items():
                self._whereabouts.book(pod_class.number, row, count)
        for pod_class in classes:
            self._enter(pod_class)

    def _enter(self, pod_class: PodClass) -> None:
        """Adds a class to the tallies that include it, and to those of its own anti-affinity."""
        for key in self._meaning.candidates(pod_class.labels):
            if self._means(key, pod_class):
                self._feed(self._tallies[key], pod_class)
        terms = self._terms[pod_class.number]
        for term in dict.fromkeys(terms.apart if terms is not None else ()):
            held = self._holders.get(term)
            if held is None:
                held = self._holders[term] = DomainCount(PodTally(), term.key, str(term.matcher))
                held.tally.views.append(held)
                self._repellers.add((term.matcher,), term)
            self._feed(held.tally, pod_class)

    def _feed(self, tally: PodTally, pod_class: PodClass) -> None:
        tally.include(self._whereabouts.of(pod_class))
        self._fed[pod_class.number].append(tally)

    def _means(self, key: _Key, pod_class: PodClass) -> bool:
        matchers, staying = key
        if staying and pod_class.leaving:
            return False
        return all(each.means(pod_class.namespace, pod_class.labels, self.namespaces) for each in matchers)

    def _numbers_meant(self, key: _Key) -> set[int]:
        return {each.number for each in self._whereabouts.classes if self._means(key, each)}

    def _numbers_holding(self, term: Term) -> set[int]:
        return {number for number, terms in enumerate(self._terms) if terms is not None and term in terms.apart}
