"""Which objects came and which are gone from one sighting of a kind to the next: the same object is unchanged."""

from itertools import compress
from operator import is_not
from typing import TypeVar

T = TypeVar("T")


def changes(before: tuple[T, ...], after: tuple[T, ...]) -> tuple[list[T], list[T]]:
    """What is gone, and what came, in order; an object that was replaced is both. Quick where most stayed."""
    if before is after:
        return [], []
    if len(before) == len(after):
        moved = list(map(is_not, before, after))
        before, after = tuple(compress(before, moved)), tuple(compress(after, moved))
    return _missing(before, after), _missing(after, before)


def _missing(these: tuple[T, ...], among: tuple[T, ...]) -> list[T]:
    """Those of the first that are not among the others."""
    there = set(map(id, among))
    return [each for each in these if id(each) not in there]
