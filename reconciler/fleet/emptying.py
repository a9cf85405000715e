"""Which nodes can go together: each in turn, if all that runs on it fits elsewhere with all that was moved before.

What a node is emptied of may go to any node that is allowed and is not gone itself. A node that took something in is
not emptied any more: nothing moves twice. What goes with its node (DaemonSets, static pods), what is being deleted
already, and a pod for whose completion its node waits, need no other place.
"""

from collections.abc import Mapping, Sequence

import msgspec

from reconciler.fleet.placing import Search, Walk
from reconciler.fleet.pod_class import PodClass, Rank
from reconciler.fleet.what_if import WhatIf

# Key of a class -> name of a node -> how many pods of the class went there the last time.
Hints = Mapping[str, Mapping[str, int]]
_NOWHERE: Mapping[str, int] = {}


class Move(msgspec.Struct, frozen=True, gc=False):
    """Pods of one class, and the row that they go to."""

    pod_class: PodClass
    to: int
    count: int


class Emptied(msgspec.Struct):
    """What came of each row that was asked about."""

    pointer: str = ""
    steps: int = 0
    together: dict[int, tuple[Move, ...]] = {}  # rows that can go, in the order asked, and where their pods go
    stuck: dict[int, PodClass] = {}  # rows that can't, and whose pods found no place
    taking: tuple[int, ...] = ()  # rows that took in pods of others before it was their turn
    not_evaluated: tuple[int, ...] = ()  # rows of which nothing is known, since the budget was spent


def empty(fleet: WhatIf, order: Sequence[int], search: Search) -> Emptied:
    """Leaves the fleet with those rows gone that can go: call it within a fork."""
    emptying = Emptying(fleet, search)
    told = Emptied()
    took: set[int] = set()
    for place, row in enumerate(order):
        if row in took:
            told.taking += (row,)
            continue
        found = emptying.one(row, {})
        if emptying.walk.spent:
            told.not_evaluated = tuple(order[place:])
            break
        if isinstance(found, PodClass):
            told.stuck[row] = found
        else:
            told.together[row] = found
            took.update([each.to for each in found])
    told.pointer, told.steps = emptying.walk.pointer, emptying.walk.steps
    return told


class Emptying:
    """One row after the other; whoever asks sees to it that no row is asked about that took something in."""

    def __init__(self, fleet: WhatIf, search: Search) -> None:
        self.walk = Walk(fleet, search)
        self._fleet = fleet

    def one(self, row: int, hints: Hints) -> tuple[Move, ...] | PodClass:
        """The moves that empty a row, or whose pods found no place: then nothing has changed."""
        fleet, walk = self._fleet, self.walk
        booked = fleet.booked_on(row)
        moving = [(each.anew, count) for each, count in booked.items() if each.needs_another_place]
        moving.sort(key=_rank)
        mark = walk.mark()
        moves: list[Move] = []
        with fleet.fork() as fork:
            fleet.vacate(row)
            for pod_class, count in moving:
                left = self._put_as_before(pod_class, count, hints, moves) if hints else count
                for to, put in walk.put(pod_class, left) if left else ():
                    moves.append(Move(pod_class, to, put))
                    left -= put
                if left:
                    walk.back(mark)
                    return pod_class
            fork.commit()
        return tuple(moves)

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
