"""Which nodes can go together: each in turn, if all that runs on it fits elsewhere with all that was moved before.

What a node is emptied of may go to any node that is allowed and is not gone itself. A node that took something in is
not emptied any more: nothing moves twice. What goes with its node (DaemonSets, static pods), what is being deleted
already, and a pod for whose completion its node waits, need no other place.
"""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from reconciler.fleet.first_fit import FirstFitCursor, Search, StepBudget
from reconciler.fleet.pod_class import PodClass, Rank
from reconciler.fleet.rows import Mask
from reconciler.fleet.snapshot.snapshot import Snapshot

# Key of a class -> name of a node -> how many pods of the class went there the last time.
Hints = Mapping[str, Mapping[str, int]]
_NOWHERE: Mapping[str, int] = {}


class Move(msgspec.Struct, frozen=True, gc=False):
    """Pods of one class, and the row that they go to."""

    pod_class: PodClass
    to: int
    count: int


class ScaleDownOutcome(msgspec.Struct):
    """What came of each row that was asked about."""

    pointer: str = ""
    steps: int = 0
    together: dict[int, tuple[Move, ...]] = {}  # rows that can go, in the order asked, and where their pods go
    stuck: dict[int, PodClass] = {}  # rows that can't, and whose pods found no place
    taking: tuple[int, ...] = ()  # rows that took in pods of others before it was their turn
    not_evaluated: tuple[int, ...] = ()  # rows of which nothing is known, since the budget was spent


def empty(fleet: Snapshot, order: Sequence[int], search: Search) -> ScaleDownOutcome:
    """Leaves the fleet with those rows gone that can go: call it within a fork."""
    emptying = ScaleDownSimulation(fleet, search)
    meter = emptying.meter
    scale_down_outcome = ScaleDownOutcome()
    took: set[int] = set()
    for place, row in enumerate(order):
        if row in took:
            scale_down_outcome.taking += (row,)
            continue
        found = emptying.one(row, {})
        if meter.spent:
            scale_down_outcome.not_evaluated = tuple(order[place:])
            break
        if isinstance(found, PodClass):
            scale_down_outcome.stuck[row] = found
        else:
            scale_down_outcome.together[row] = found
            took.update([each.to for each in found])
    scale_down_outcome.pointer, scale_down_outcome.steps = emptying.walk.pointer, meter.steps
    return scale_down_outcome


class ScaleDownSimulation:
    """One row after the other; whoever asks sees to it that no row is asked about that took something in.

    Pods go to `preferred` rows first, those of nodes that stay anyway: what goes elsewhere keeps a node that could have
    gone itself. Both masks may change between two rows.
    """

    def __init__(self, fleet: Snapshot, search: Search, preferred: Mask | None = None) -> None:
        self.meter = StepBudget(search.budget)
        self.walk = FirstFitCursor(fleet, search, self.meter)
        self._preferred = np.zeros_like(fleet.rows.alive) if preferred is None else preferred
        self._first = (
            None if preferred is None else FirstFitCursor(fleet, replace(search, allowed=preferred), self.meter)
        )
        self._fleet = fleet

    def one(self, row: int, hints: Hints) -> tuple[Move, ...] | PodClass:
        """The moves that empty a row, or whose pods found no place: then nothing has changed."""
        fleet = self._fleet
        booked = fleet.booked_on(row)
        moving = [(each.anew, count) for each, count in booked.items() if each.needs_another_place]
        moving.sort(key=_rank)
        marks = [(walk, walk.mark()) for walk in (self._first, self.walk) if walk is not None]
        opened: list[int] = []
        moves: list[Move] = []
        with fleet.fork() as fork:
            fleet.vacate(row)
            for pod_class, count in moving:
                left = self._put_as_before(pod_class, count, hints, moves) if hints else count
                if left and self._put(pod_class, left, moves, opened):
                    for walk, mark in marks:
                        walk.back(mark)
                    self._preferred[opened] = False
                    return pod_class
            fork.commit()
        return tuple(moves)

    def _put(self, pod_class: PodClass, count: int, moves: list[Move], opened: list[int]) -> int:
        """How many are left of them. A further node that has to take some is a node that stays from then on."""
        for to, put in self._first.put(pod_class, count) if self._first is not None else ():
            moves.append(Move(pod_class, to, put))
            count -= put
        for to, put in self.walk.put(pod_class, count) if count else ():
            moves.append(Move(pod_class, to, put))
            count -= put
            if self._first is not None and not self._preferred[to]:
                self._preferred[to] = True
                opened.append(to)
                self._first.back(self.walk.mark())
        return count

    def _put_as_before(self, pod_class: PodClass, count: int, hints: Hints, moves: list[Move]) -> int:
        """How many are left of them."""
        for name, many in hints.get(pod_class.key, _NOWHERE).items():
            to = self._fleet.rows.row_of.get(name)
            if to is not None and (put := self.walk.put_on(pod_class, to, min(many, count))):
                moves.append(Move(pod_class, to, put))
                count -= put
        return count


def _rank(moving: tuple[PodClass, int]) -> Rank:
    return moving[0].rank
