"""Owner of the tallies: how many pods there are that some term means, or that have some term.

Until the first class with a term is seen nothing is kept, so that a fleet where nobody asks about other pods pays
nothing. From then on each class knows the tallies that its pods are part of; most have none. A tally is made when it
is first asked for, from where the classes are that it means. Tallies are never taken back: what a fork leaves behind
are true counts of what is booked.
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

# --- Owner of how many pods alike to some term there are, by domain; what it keeps grows with those pods alone.


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


_Key = tuple[tuple[Matcher, ...], bool]  # whom a tally counts, and whether those that are being deleted are left out


class Counting:
    """The tallies of one what-if; whoever asks calls `catch_up` first."""

    def __init__(self, fleet: Snapshot) -> None:
        self.epoch = 0  # with another one everything was forgotten: who keeps a tally has to ask for it again
        self.eligibles = Eligibles()
        self.namespaces = Namespaces.of(fleet.observed)
        self._beyond: frozenset[Compared] = frozenset()  # what is not compared (terms.py)
        self._bounded = -1  # the sighting of pods that it is of
        self._own: list[PodAffinityTerms | None] = []  # by class, what its pods say
        self._compared = 0  # how many terms these have
        self._within = 0  # so many classes are known to be within the bound, all together
        self._observed = fleet.observed
        self._forget()
        fleet.listen(self)
        fleet.on_vacated.append(self.eligibles.flip_vacated)

    def catch_up(self, fleet: Snapshot) -> None:
        """Learns of the classes and namespaces that are new."""
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
        """Whether a class has terms that are not compared: there are too many in its namespace."""
        return bool(self._beyond) and pod_class.number in self._classes_beyond

    def _bound(self, fleet: Snapshot) -> None:
        """Finds what is not compared, among the terms of the pods that were seen."""
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
        if found:  # what is remembered of pods that are gone must not count
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
        """Whether nobody asks about other pods."""
        return not self._warm

    def terms(self, pod_class: PodClass) -> PodAffinityTerms | None:
        """What pods of a class ask about others; None where they ask nothing."""
        return self._terms[pod_class.number]

    def tally(self, matchers: tuple[Matcher, ...], staying: bool = False) -> PodTally:
        """The pods that all the matchers mean; with `staying`, without those that are being deleted."""
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
        """How many of them there are in each domain."""
        domain_count = self._counts.get((matchers, key))
        if domain_count is None:
            domain_count = DomainCount(self.tally(matchers), key, " and ".join(map(str, matchers)))
            domain_count.tally.views.append(domain_count)
            self._counts[matchers, key] = domain_count
        return domain_count

    def repelling(self, pod_class: PodClass) -> tuple[DomainCount, ...]:
        """For each anti-affinity term that means pods like this one, how many pods with that term each domain has."""
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
        """The same count, made for the rows as they are."""
        if count.version != fleet.rows.version:
            count.renew(self.column(count.key, fleet), fleet.rows.version)
        return count

    def column(self, key: str, fleet: Snapshot) -> DomainColumn:
        """The domain of each row."""
        return self._columns.of(key, fleet.rows)

    # What the what-if tells

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
        """What is counted otherwise than it would be afresh: nothing, however the bookings came about."""
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

    # Learning

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
        """Somebody asks about other pods, so from now on it is kept where they are."""
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
        """Puts a class into the tallies that it is part of, those of its own anti-affinity included."""
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
