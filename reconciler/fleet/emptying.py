"""Which nodes can go together: each in turn, if all that runs on it fits elsewhere with all that was moved before.

What a node is emptied of may go to any node that is allowed and is not gone itself. A node that took something in is
not emptied any more: nothing moves twice. What goes with its node (DaemonSets, static pods) needs no other place.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from reconciler.fleet.placing import Search, Walk
from reconciler.fleet.pod_class import PodClass, Rank
from reconciler.fleet.what_if import WhatIf


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
    walk = Walk(fleet, search)
    told = Emptied()
    took: set[int] = set()
    for place, row in enumerate(order):
        if row in took:
            told.taking += (row,)
            continue
        found = _one(fleet, row, walk, search.hints)
        if walk.spent:
            told.not_evaluated = tuple(order[place:])
            break
        if isinstance(found, PodClass):
            told.stuck[row] = found
        else:
            told.together[row] = found
            took.update([each.to for each in found])
    told.pointer, told.steps = walk.pointer, walk.steps
    return told


def _one(fleet: WhatIf, row: int, walk: Walk, hints: Mapping[str, str]) -> tuple[Move, ...] | PodClass:
    """The moves that empty a row, or whose pods found no place: then nothing has changed."""
    moving = [(each.anew, count) for each, count in fleet.booked_on(row).items() if not each.goes_with_its_node]
    moving.sort(key=_rank)
    wanted = _wanted(fleet, row, hints) if hints else {}
    mark = walk.mark()
    moves: list[Move] = []
    with fleet.fork() as fork:
        fleet.vacate(row)
        for pod_class, count in moving:
            hinted = [to for to in wanted.get(pod_class, ())[:count] if walk.put_on(pod_class, to)]
            left = count - len(hinted)
            put = walk.put(pod_class, left) if left else []
            if sum([booked for _, booked in put]) < left:
                walk.back(mark)
                return pod_class
            moves += [Move(pod_class, to, 1) for to in hinted]
            moves += [Move(pod_class, to, booked) for to, booked in put]
        fork.commit()
    return tuple(moves)


def _wanted(fleet: WhatIf, row: int, hints: Mapping[str, str]) -> dict[PodClass, list[int]]:
    """The rows that pods of the row went to last time, by class."""
    found: defaultdict[PodClass, list[int]] = defaultdict(list)
    for pod in fleet.pods_of_row(row):
        to = fleet.rows.row_of.get(hints.get(pod.metadata.uid, ""))
        if to is not None and to != row:
            found[fleet.classes.of(pod).anew].append(to)
    return found


def _rank(moving: tuple[PodClass, int]) -> Rank:
    return moving[0].rank
