"""Owner of a walk over the nodes that puts pods on the first that takes them.

The walk is cyclic and stays where it last put a pod, so that pods fill a node before they go on to the next. Where pods
of a class are only in each other's way by what they take, as many are put on a node at once as there is room for.

A step is one predicate asked about one node, or about up to a thousand at once. What labels, taints and names of nodes
say counts as one predicate. Steps depend on what is asked alone, not on what happens to be remembered.
"""

from collections.abc import Iterator, Mapping

import msgspec
import numpy as np

from reconciler.fleet.judging import Asked, Judging
from reconciler.fleet.pod_class import PodClass
from reconciler.fleet.rows import Mask, Places
from reconciler.fleet.what_if import WhatIf

_AT_ONCE = 1_000
_NOWHERE: Places = np.zeros(0, np.intp)


class Search(msgspec.Struct, frozen=True):
    """Where to look first, and for how long."""

    pointer: str = ""  # the node to begin with, or the next by name; nothing: at the end where all begin
    backwards: bool = False  # from the last node by name to the first
    allowed: Mask | None = None  # rows that may take pods; None: all
    hints: Mapping[str, str] = {}  # uid of a pod -> name of the node that is tried first
    budget: int | None = None  # of steps


class Walk:
    """Where it stands, and how many steps it took."""

    def __init__(self, fleet: WhatIf, search: Search) -> None:
        self.steps = 0
        self.spent = False  # steps were lacking: of whatever was not put, nothing is known
        self.allowed = search.allowed
        self._fleet = fleet
        self._judging = fleet.part(Judging)
        self._budget = search.budget
        self._order: Places = fleet.rows.order[::-1] if search.backwards else fleet.rows.order
        self._ring: Places = np.concatenate((self._order, self._order))
        self._sweep = -(-len(self._order) // _AT_ONCE)
        self._at = _place(fleet, search)

    @property
    def pointer(self) -> str:
        """The name of the node where it stands."""
        return self._fleet.rows.node(int(self._order[self._at])).name if len(self._order) else ""

    def mark(self) -> int:
        """Where it stands, to come `back` to."""
        return self._at

    def back(self, mark: int) -> None:
        self._at = mark

    def put(self, pod_class: PodClass, count: int) -> list[tuple[int, int]]:
        """Books as many pods of a class as find a place: rows, and how many on each."""
        if pod_class.unmodelled or not len(self._order):
            return []
        asked = self._judging.asked(pod_class)
        if self._judging.goes_in_bulk(asked):
            return self._put_in_bulk(pod_class, count, asked)
        put: list[tuple[int, int]] = []
        for _ in range(count):
            if not self._fits(pod_class, int(self._order[self._at]), asked):
                places = self._look(pod_class, asked)
                if not len(places):
                    break
                self._at = int(places[0])
            row = int(self._order[self._at])
            self._fleet.add(pod_class, row)
            put.append((row, 1))
            asked = self._judging.asked(pod_class)
        return put

    def put_on(self, pod_class: PodClass, row: int) -> bool:
        """Books a pod on one row, if it fits there; where the walk stands does not change."""
        fits = self._fits(pod_class, row, self._judging.asked(pod_class))
        if fits:
            self._fleet.add(pod_class, row)
        return fits

    def _put_in_bulk(self, pod_class: PodClass, count: int, asked: Asked) -> list[tuple[int, int]]:
        fleet, room = self._fleet, self._fleet.stock.room
        put: list[tuple[int, int]] = []
        row = int(self._order[self._at])
        booked = 0
        if self._spend(len(asked) + 1) and self._is_open(row) and self._judging.may_be_on(pod_class, row):
            booked = min(count, room(pod_class.request, row))
        if booked:
            fleet.add(pod_class, row, booked)
            put.append((row, booked))
        count -= booked
        for place in self._roomy_places(pod_class, asked) if count else ():
            if not self._spend(len(asked)):
                break
            row = int(self._order[place])
            booked = min(count, room(pod_class.request, row))
            fleet.add(pod_class, row, booked)
            put.append((row, booked))
            self._at = place
            count -= booked
            if not count:
                break
        return put

    def _fits(self, pod_class: PodClass, row: int, asked: Asked) -> bool:
        return self._spend(len(asked) + 1) and self._is_open(row) and self._judging.fits(pod_class, row, asked)

    def _is_open(self, row: int) -> bool:
        return self.allowed is None or bool(self.allowed[row])

    def _roomy_places(self, pod_class: PodClass, asked: Asked) -> Iterator[int]:
        """Where there is room, from where it stands on: first among the next thousand, then among all others."""
        many, start = len(self._order), self._at + 1
        rows, stock = self._fleet.rows, self._fleet.stock
        ring = self._ring
        for begin, end in ((start, min(start + _AT_ONCE, start + many - 1)), (start + _AT_ONCE, start + many - 1)):
            if begin >= end:
                return
            if not self._spend((len(asked) + 1) * -(-(end - begin) // _AT_ONCE)):
                return
            among = ring[begin:end]
            mask = stock.roomy_among(pod_class.request, among)
            np.logical_and(mask, rows.alive[among], out=mask)
            np.logical_and(mask, self._judging.static_mask(pod_class)[among], out=mask)
            if self.allowed is not None:
                np.logical_and(mask, self.allowed[among], out=mask)
            for place in mask.nonzero()[0]:
                yield (begin + int(place)) % many

    def _look(self, pod_class: PodClass, asked: Asked) -> Places:
        """Where there is a place, from where it stands on, all the way round."""
        if not self._spend((len(asked) + 1) * self._sweep):
            return _NOWHERE
        mask = self._judging.mask(pod_class, asked)
        if self.allowed is not None:
            np.logical_and(mask, self.allowed, out=mask)
        places: Places = mask[self._order].nonzero()[0]
        before = int(places.searchsorted(self._at))
        return np.concatenate((places[before:], places[:before])) if before else places

    def _spend(self, steps: int) -> bool:
        if self._budget is not None and self.steps + steps > self._budget:
            self.spent = True
            return False
        self.steps += steps
        return True


def _place(fleet: WhatIf, search: Search) -> int:
    """Where in the order of the walk the pointer is; a node that is gone is passed over."""
    many = len(fleet.rows.order)
    if not search.pointer or not many:
        return 0
    if not search.backwards:
        return fleet.rows.position(search.pointer) % many
    there = search.pointer in fleet.rows.row_of
    return (many - fleet.rows.position(search.pointer) - there) % many
