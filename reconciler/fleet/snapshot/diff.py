"""Differences between two observations of a kind: added and removed objects, by object identity."""

from collections.abc import Iterator
from itertools import compress, count, islice, starmap
from operator import is_not
from typing import TypeVar

import msgspec

from reconciler.model.cluster.node import Node
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod

T = TypeVar("T")

# With more differing places than this, the rest is compared as sets.
_FEWEST_PLACES = 16
_OBJECTS_A_PLACE = 64
_MOST_IN_A_ROW = 8  # added or removed side by side


class SnapshotDiff(msgspec.Struct, frozen=True):
    """Changed nodes and pods, in order; a replaced object is both removed and added."""

    gone_pods: list[Pod]
    came_pods: list[Pod]
    gone_nodes: list[Node]
    came_nodes: list[Node]


def change_between(before: Observed, after: Observed) -> SnapshotDiff:
    """The difference of two Observed."""
    return SnapshotDiff(*changes(before.pods, after.pods), *changes(before.nodes, after.nodes))


def changes(before: tuple[T, ...], after: tuple[T, ...]) -> tuple[list[T], list[T]]:
    """Removed and added objects, in order; a replaced object is both. Fast if most are unchanged."""
    if before is after:
        return [], []
    gone: list[T] = []
    came: list[T] = []
    # One pass over both tuples side by side: for this many objects, memory access dominates.
    were, are = iter(before), iter(after)
    here, there = 0, 0
    for _ in range(_FEWEST_PLACES + len(before) // _OBJECTS_A_PLACE):
        same = next(compress(count(), starmap(is_not, zip(were, are, strict=False))), None)
        if same is None:
            same = min(len(before) - here, len(after) - there)
            here, there = here + same, there + same
            break
        here, there = here + same, there + same
        if fewer := _in_a_row(before, here, after[there]):
            gone += before[here : here + fewer]
            here += fewer
            _skip(were, fewer)
        elif more := _in_a_row(after, there, before[here]):
            came += after[there : there + more]
            there += more
            _skip(are, more)
        else:
            gone.append(before[here])
            came.append(after[there])
        here, there = here + 1, there + 1
    return _apart([*gone, *before[here:]], [*came, *after[there:]])


def _in_a_row(objects: tuple[T, ...], at: int, goes_on: T) -> int:
    """The number of objects before the next common one; 0 if there is none nearby."""
    for many, each in enumerate(objects[at + 1 : at + 1 + _MOST_IN_A_ROW], 1):
        if each is goes_on:
            return many
    return 0


def _skip(objects: Iterator[T], many: int) -> None:
    next(islice(objects, many, many), None)


def _apart(before: list[T], after: list[T]) -> tuple[list[T], list[T]]:
    """Objects only in the first list, and only in the second; a moved object is in neither."""
    were, are = list(map(id, before)), list(map(id, after))
    gone, came = set(were).difference(are), set(are).difference(were)
    return list(compress(before, map(gone.__contains__, were))), list(compress(after, map(came.__contains__, are)))
