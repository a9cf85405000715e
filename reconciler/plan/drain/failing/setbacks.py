"""How long a node is left alone that could not be drained: 5 min, and twice as long each further time in a row.

What did not come again for an hour after that is forgotten.
"""

from collections.abc import Iterable, Iterator

from reconciler.fleet.fleet import Fleet
from reconciler.model.instant import Instant
from reconciler.model.planned.drained import Setback

FIRST_MS = 300_000
_DOUBLINGS = 3
_FORGOTTEN_MS = 3_600_000


def rests_until(setback: Setback) -> Instant:
    """When it may be tried again."""
    return Instant(setback.at + FIRST_MS * 2 ** min(setback.times - 1, _DOUBLINGS))


def remembered(setbacks: Iterable[Setback], fleet: Fleet, now: Instant) -> Iterator[Setback]:
    """Those of nodes that are there, and that are not forgotten."""
    for each in setbacks:
        node = fleet.node(each.node)
        if node is not None and node.metadata.uid == each.uid and now < rests_until(each) + _FORGOTTEN_MS:
            yield each


def another(before: Iterable[Setback], setback: Setback) -> Setback:
    """The same, counted with those before it in a row."""
    times = next((each.times for each in before if (each.node, each.uid) == (setback.node, setback.uid)), 0)
    return Setback(setback.node, setback.uid, setback.at, setback.code, times + 1)
