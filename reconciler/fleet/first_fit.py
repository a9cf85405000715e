"""First-fit search: places each pod on the first node that accepts it.

Nodes are visited by name, unless the search defines an order of its own, so that results do not depend on names. The
order is computed at the first search: a pod that goes to its hinted node needs none.

The search is cyclic and continues at the node of the last placement, so that pods fill a node before the next one.
If pods of a class only compete for resources, as many as fit are placed on a node at once.

A step is one predicate evaluated for one node, or for up to a thousand at once; labels, taints and names count as
one predicate. The number of steps depends on the queries alone, not on caches.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

import msgspec
import numpy as np

from reconciler.fleet.filters.chain import ActivePredicates, FilterChain
from reconciler.fleet.pod_classes import PodClass
from reconciler.fleet.rows import Mask, Places
from reconciler.fleet.snapshot.snapshot import Snapshot

_FEW, _AT_ONCE = 64, 1_000
_MOST_REFUSALS = 16  # nodes checked one by one; after so many refusals, all nodes are evaluated at once


class Search(msgspec.Struct, frozen=True):
    """Parameters of a search: order, start and limits."""

    pointer: str = ""  # start node, or the next by name; empty: the start of the order
    backwards: bool = False  # reverse order
    order: Callable[[], Places] | None = None  # all rows; None: by name
    allowed: Mask | None = None  # rows that may be used; None: all
    hints: Mapping[str, str] = {}  # uid of a pod -> node to try first
    budget: int | None = None  # maximum number of steps
    tells_why: bool = True  # collect obstacles for pods that fit nowhere
    anew: bool = False  # each class of pods starts at the pointer again, instead of continuing


class StepBudget:
    """Owner of the number of steps, for one or several searches that share a budget."""

    def __init__(self, budget: int | None) -> None:
        self.budget = budget
        self.steps = 0
        self.spent = False  # the budget was exceeded: results for unplaced pods are unknown

    def spend(self, steps: int) -> bool:
        """Whether so many steps are left."""
        if self.budget is not None and self.steps + steps > self.budget:
            self.spent = True
            return False
        self.steps += steps
        return True


class FirstFitCursor:
    """The position of a search, and its number of steps."""

    def __init__(self, fleet: Snapshot, search: Search, meter: StepBudget | None = None) -> None:
        self.meter = StepBudget(search.budget) if meter is None else meter
        self._spend = self.meter.spend
        self.allowed = search.allowed
        self._search = search
        self._fleet = fleet
        self._judging = fleet.part(FilterChain)
        self._stands: int | None = None  # None: the start of the order
        if search.order is None:  # the current rows, without rows added later
            _ = self._order

    @cached_property
    def _order(self) -> Places:
        order = self._fleet.rows.order if self._search.order is None else self._search.order()
        return order[::-1] if self._search.backwards else order

    @cached_property
    def _ring(self) -> Places:
        return np.concatenate((self._order, self._order))

    @property
    def _sweep(self) -> int:
        return -(-len(self._order) // _AT_ONCE)

    @cached_property
    def _begin(self) -> int:
        return self._place(self._search.pointer)

    @property
    def _at(self) -> int:
        return self._begin if self._stands is None else self._stands

    @property
    def pointer(self) -> str:
        """The node at the current position."""
        return self._fleet.rows.node(int(self._order[self._at])).name if len(self._order) else ""

    def stand_at(self, pointer: str) -> None:
        """Continues at another position, after other searches."""
        self._stands = self._place(pointer)

    def mark(self) -> int | None:
        """The current position, for `back`."""
        return self._stands

    def back(self, mark: int | None) -> None:
        self._stands = mark

    def _place(self, pointer: str) -> int:
        """The index of the node in the order.

        If the node is gone: by name, the next node; in a custom order, the start.
        """
        rows, many = self._fleet.rows, len(self._order)
        if not pointer or not many:
            return 0
        if self._search.order is not None:
            row = rows.row_of.get(pointer)
            return int(np.argmax(self._order == row)) if row is not None else 0
        if not self._search.backwards:
            return rows.position(pointer) % many
        return (many - rows.position(pointer) - (pointer in rows.row_of)) % many

    def put(self, pod_class: PodClass, count: int) -> list[tuple[int, int]]:
        """Books as many pods of a class as fit; returns rows with their number of pods."""
        if pod_class.unmodelled or not len(self._order):
            return []
        if self._search.anew:
            self._stands = None
        predicates = self._judging.active_predicates(pod_class)
        if self._judging.goes_in_bulk(predicates):
            return self._put_in_bulk(pod_class, count, predicates)
        put: list[tuple[int, int]] = []
        while count:
            place = self._next(pod_class, predicates)
            if place is None:
                break
            self._stands = place
            row = int(self._order[place])
            self._fleet.add(pod_class, row)
            put.append((row, 1))
            count -= 1
            if count:
                predicates = self._judging.active_predicates(pod_class)
        return put

    def put_on(self, pod_class: PodClass, row: int, count: int = 1) -> int:
        """Books as many pods of a class on one row as fit; does not change the position."""
        predicates = self._judging.active_predicates(pod_class)
        if self._judging.goes_in_bulk(predicates):
            return self._put_on_in_bulk(pod_class, row, count, predicates)
        put = 0
        while put < count and self._fits(pod_class, row, predicates):
            self._fleet.add(pod_class, row)
            put += 1
            predicates = self._judging.active_predicates(pod_class) if put < count else predicates
        return put

    def _put_on_in_bulk(self, pod_class: PodClass, row: int, count: int, predicates: ActivePredicates) -> int:
        if not (self._spend(len(predicates) + 1) and self._is_open(row) and self._judging.may_be_on(pod_class, row)):
            return 0
        booked = min(count, self._fleet.stock.room(pod_class.request, row))
        if booked:
            self._fleet.add(pod_class, row, booked)
        return booked

    def _put_in_bulk(self, pod_class: PodClass, count: int, predicates: ActivePredicates) -> list[tuple[int, int]]:
        fleet, room = self._fleet, self._fleet.stock.room
        row = int(self._order[self._at])
        booked = self._put_on_in_bulk(pod_class, row, count, predicates)
        put = [(row, booked)] if booked else []
        count -= booked
        for place in self._roomy_places(pod_class) if count else ():
            if not self._spend(len(predicates)):
                break
            row = int(self._order[place])
            booked = min(count, room(pod_class.request, row))
            fleet.add(pod_class, row, booked)
            put.append((row, booked))
            self._stands = place
            count -= booked
            if not count:
                break
        return put

    def _fits(self, pod_class: PodClass, row: int, predicates: ActivePredicates) -> bool:
        return (
            self._spend(len(predicates) + 1) and self._is_open(row) and self._judging.fits(pod_class, row, predicates)
        )

    def _is_open(self, row: int) -> bool:
        return self.allowed is None or bool(self.allowed[row])

    def _next(self, pod_class: PodClass, predicates: ActivePredicates) -> int | None:
        """The first place from the current position that accepts such a pod."""
        if self._fits(pod_class, int(self._order[self._at]), predicates):
            return self._at
        refusals = 0
        for place in self._roomy_places(pod_class):
            if self._fits(pod_class, int(self._order[place]), predicates):
                return place
            refusals += 1
            if self.meter.spent or refusals > _MOST_REFUSALS:
                break
        return self._look(pod_class, predicates) if refusals > _MOST_REFUSALS and not self.meter.spent else None

    def _roomy_places(self, pod_class: PodClass) -> Iterator[int]:
        """Places with free resources after the current position: among the next few, then among more, then among all
        others.

        When nodes are filled in order, there is free room close by, so most searches cost the same for any number of
        nodes.
        """
        begin, many = self._at + 1, len(self._order)
        last = self._at + many
        for size in (_FEW, _AT_ONCE, many):
            end = min(begin + size, last)
            if begin == end or not self._spend(2 * -(-(end - begin) // _AT_ONCE)):
                return
            for place in self._roomy_among(pod_class, self._ring[begin:end]).nonzero()[0]:
                yield (begin + int(place)) % many
            begin = end

    def _roomy_among(self, pod_class: PodClass, among: Places) -> Mask:
        """The rows with enough room, considering only labels, taints and resources."""
        mask = self._fleet.stock.roomy_among(pod_class.request, among)
        np.logical_and(mask, self._fleet.rows.alive[among], out=mask)
        np.logical_and(mask, self._judging.static_mask(pod_class)[among], out=mask)
        if self.allowed is not None:
            np.logical_and(mask, self.allowed[among], out=mask)
        return mask

    def _look(self, pod_class: PodClass, predicates: ActivePredicates) -> int | None:
        """Like `_next`, but evaluates all nodes at once: expensive, but cheaper if many nodes refuse."""
        if not self._spend((len(predicates) + 1) * self._sweep):
            return None
        mask = self._judging.mask(pod_class, predicates)
        if self.allowed is not None:
            np.logical_and(mask, self.allowed, out=mask)
        places: Places = mask[self._order].nonzero()[0]
        if not len(places):
            return None
        return int(places[int(places.searchsorted(self._at)) % len(places)])
