"""Which nodes hold so many equal pods for the fewest dollars, and of those the fewest nodes; exact up to 2,048 pods.

The best way to hold each number of pods up to all of them follows from the best ways to hold fewer: first with offers
that never run out, then with the others, of which there may be one, two, four and so on. Of more pods than that, most
go to the offer that is cheapest a pod, as long as it lasts.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from reconciler.fleet.rows import Counts

_EXACT = 2048  # pods
_FINE = 2**20  # parts of a micro-dollar
_NODES = 13  # bits that count nodes beneath the price
_DEAR = 2**62

_Cover = dict[int, int]  # offer -> nodes
_Some = tuple[int, int, NDArray[np.bool_]]  # offer, nodes, for which numbers of pods they are the best


def cover(count: int, holds: Counts, price: Counts, lasts: Counts) -> list[tuple[int, int]]:
    """Offer and how many of it, for all pods or as many as there are nodes for. All arrays are by offer."""
    found: _Cover = {}
    left = count
    whole = np.minimum(lasts, count)
    lasts = whole.copy()
    while left > _EXACT:
        usable = np.flatnonzero((holds > 0) & (lasts > 0)).tolist()
        if not usable:
            return sorted(found.items())
        best = min(usable, key=lambda at: (_FINE * int(price[at]) // int(holds[at]), -int(holds[at]), at))
        nodes = min(-(-(left - _EXACT) // int(holds[best])), int(lasts[best]))
        found[best] = nodes
        lasts[best] -= nodes
        left -= nodes * int(holds[best])
    for offer, nodes in _exact(max(left, 0), holds, price, lasts).items():
        found[offer] = found.get(offer, 0) + nodes
    alone = ([(at, -(-count // int(holds[at])))] for at in np.flatnonzero(holds > 0).tolist())
    mixed = sorted(found.items())
    if sum(nodes * int(holds[offer]) for offer, nodes in mixed) < count:
        return mixed
    enough = [each for each in alone if each[0][1] <= whole[each[0][0]]]
    return min([mixed, *enough], key=lambda step: (_bill(step, price), sum(nodes for _, nodes in step), step))


def _bill(step: list[tuple[int, int]], price: Counts) -> int:
    return sum(int(price[offer]) * nodes for offer, nodes in step)


def _exact(count: int, holds: Counts, price: Counts, lasts: Counts) -> _Cover:
    """The best way to hold so many pods, or as many of them as there are nodes for."""
    cost = (price << _NODES) + 1
    best, chosen = _endless(count, _wanted(count, holds, price, lasts), holds, cost)
    some: list[_Some] = []
    for offer, nodes in _limited(count, holds, lasts):
        before = best[np.maximum(np.arange(count + 1) - nodes * int(holds[offer]), 0)]
        after = np.where(before < _DEAR, before + nodes * int(cost[offer]), _DEAR)
        is_better = after < best
        best = np.where(is_better, after, best)
        some.append((offer, nodes, is_better))
    return _traced(int(np.flatnonzero(best < _DEAR)[-1]), some, chosen, holds)


def _endless(count: int, offers: list[int], holds: Counts, cost: Counts) -> tuple[Counts, Counts]:
    """With offers that never run out: the cost of holding each number of pods, and an offer that is part of it."""
    best: Counts = np.full(count + 1, _DEAR, np.int64)
    chosen: Counts = np.full(count + 1, -1, np.int64)
    best[0] = 0
    if not offers:
        return best, chosen
    if len(offers) == 1:
        nodes = -(-np.arange(count + 1) // int(holds[offers[0]]))
        chosen[1:] = offers[0]
        return nodes * int(cost[offers[0]]), chosen
    costs, rooms = cost[offers], holds[offers]
    for number in range(1, count + 1):
        sums = costs + best[np.maximum(number - rooms, 0)]
        at = int(sums.argmin())
        best[number], chosen[number] = sums[at], offers[at]
    return best, chosen


def _wanted(count: int, holds: Counts, price: Counts, lasts: Counts) -> list[int]:
    """Offers that do not run out, without those of which another holds as much for no more."""
    duration = np.flatnonzero((holds > 0) & (lasts * holds >= count)).tolist()
    kept: list[int] = []
    for offer in sorted(duration, key=lambda at: (-int(holds[at]), int(price[at]), at)):
        if not kept or price[offer] < price[kept[-1]]:
            kept.append(offer)
    return sorted(kept)


def _limited(count: int, holds: Counts, lasts: Counts) -> Iterator[tuple[int, int]]:
    """Offers that run out, in ones, twos, fours and so on, that add up to as many as there are."""
    for offer in np.flatnonzero((holds > 0) & (lasts > 0) & (lasts * holds < count)).tolist():
        left, part = int(lasts[offer]), 1
        while left > 0:
            yield offer, min(part, left)
            left -= part
            part *= 2


def _traced(count: int, some: list[_Some], chosen: Counts, holds: Counts) -> _Cover:
    """The nodes that the best way is made of."""
    result: _Cover = {}
    for offer, nodes, is_better in reversed(some):
        if count > 0 and is_better[count]:
            result[offer] = result.get(offer, 0) + nodes
            count = max(count - nodes * int(holds[offer]), 0)
    while count > 0:
        offer = int(chosen[count])
        result[offer] = result.get(offer, 0) + 1
        count -= int(holds[offer])
    return result
