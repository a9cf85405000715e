"""How long a node is left alone that could not be drained: 5 min, and twice as long each further time in a row.

What did not come again for an hour after that is forgotten.
"""

from collections.abc import Iterable

from reconciler.fleet.fleet import Fleet
from reconciler.model.instant import Instant, later
from reconciler.model.plan.drain_memory import Setback

FIRST_MS = 300_000
_DOUBLINGS = 3
_FORGOTTEN_MS = 3_600_000


def rests_until(setback: Setback) -> Instant:
    """When it may be tried again."""
    return later(setback.at, FIRST_MS * 2 ** min(setback.times - 1, _DOUBLINGS))


def unforgotten(setbacks: Iterable[Setback], fleet: Fleet, now: Instant) -> tuple[Setback, ...]:
    """Those of nodes that are there, and that were not long ago."""
    found = []
    for each in setbacks:
        node = fleet.node(each.node)
        if node is not None and node.metadata.uid == each.uid and now < rests_until(each) + _FORGOTTEN_MS:
            found.append(each)
    return tuple(found)


def with_more(known: Iterable[Setback], new: Iterable[Setback]) -> tuple[Setback, ...]:
    """In order; each that is new is counted with those before it in a row."""
    setbacks = {(each.node, each.uid): each for each in known}
    for each in new:
        before = setbacks.get((each.node, each.uid))
        times = before.times if before is not None else 0
        setbacks[each.node, each.uid] = Setback(each.node, each.uid, each.at, each.code, times + 1)
    return tuple(sorted(setbacks.values()))
