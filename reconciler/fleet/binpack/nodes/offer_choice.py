"""Which offers fit a pod, and which offer has the lowest cost per average pending pod."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reconciler.fleet.binpack.nodes.pod_groups import ANYWHERE, Lots
from reconciler.fleet.binpack.offers import Indices, OfferMarket
from reconciler.fleet.rows import Counts, Mask

# --- Value of pods: their cost if every node were full, by resource prices that are at most those of any offer.
#
# For each resource, the cheapest offer gives a minimum price per unit; demand times this price is a lower bound of the
# total cost. The resource with the highest bound is the scarce one. Its price alone would suffice, but other resources
# may be nearly as scarce, and a node is well filled only if they are used too. So prices are combined, weighted by the
# eighth power of the bounds. Each price is a lower bound, hence so is the combination: no node is worth more than it
# costs.

_PARTS = 1024  # fractions of a micro-dollar: small pods have a value too
_MOST = 2**62  # for pods larger than any node


class ResourcePrices:
    """Price per unit of each resource, in fractions of a micro-dollar."""

    def __init__(self, market: OfferMarket, demand: Counts) -> None:
        rates, bounds = [], []
        for amount, room in zip(demand.tolist(), market.room, strict=True):
            has = market.open & (room > 0)
            rate = float((market.price[has] / room[has]).min()) if amount and has.any() else 0.0
            rates.append(rate)
            bounds.append(rate * amount)
        most = max(bounds, default=0.0) or 1.0
        weights = [_eighth_power(bound / most) for bound in bounds]
        whole = sum(weights) or 1.0
        self._rates = [_PARTS * rate * weight / whole for rate, weight in zip(rates, weights, strict=True)]

    def of(self, amounts: Counts) -> Counts:
        """Value of each column of amounts, in fractions of a micro-dollar."""
        mask = np.zeros(amounts.shape[1:])
        for rate, amount in zip(self._rates, amounts, strict=True):
            if rate:
                mask = mask + rate * amount
        return np.rint(np.minimum(mask, _MOST)).astype(np.int64)

    @staticmethod
    def price(micro_dollars: Counts) -> Counts:
        """A price in the same fractions."""
        return micro_dollars * _PARTS


def _eighth_power(number: float) -> float:
    square = number * number
    fourth = square * square
    return fourth * fourth


_FINE = 2**20  # fractions of a micro-dollar per pod
_TRIED, _TRIED_LAST = 4, 8  # offers; more if all remaining pods fit onto one node


class Ranked(NamedTuple):
    """Offers, best first, and how many average pods each holds."""

    offers: Indices
    equals: Indices  # offers equal to the best one
    holds: Counts
    by_look: dict[int, Indices]  # offers of a virtual node, cheapest first; computed on demand


class Choosing:
    """The rules, with offers and pending pods."""

    def __init__(self, lots: Lots, market: OfferMarket, place_of_offer: Indices) -> None:
        self._lots = lots
        self._market = market
        self._place_of_offer = place_of_offer
        self._ranked: dict[int, tuple[int, int, Ranked | None]] = {}
        self._best: dict[int, int] = {}
        self._alone: dict[int, int] = {}

    def hardest_first(self, worth: ResourcePrices, may_lead: Mask) -> list[int]:
        """Groups that few offers fit first, then the most valuable; without groups that need other pods on the host."""
        lots = self._lots
        if not len(lots):
            return []
        worths = worth.of(lots.sizes.T)[lots.size]
        order = np.lexsort((np.arange(len(lots)), -worths, lots.tier))
        result: list[int] = order[may_lead[lots.profile[order]]].tolist()
        return result

    def suited(self, lot: int) -> Mask:
        """Offers that fit a single pod of the group."""
        lots, market = self._lots, self._market
        mask: Mask = market.holding(lots.sizes[lots.size[lot]]) & lots.masks[lots.mask[lot]][market.look]
        if lots.place[lot] != ANYWHERE:
            mask &= self._place_of_offer == lots.place[lot]
        return mask

    def ranked(self, lot: int) -> Ranked | None:
        """The offers that fit a group, by cost per average pod of the same tier."""
        known = self._ranked.get(lot)
        if known is None or known[0] != self._market.version or 16 * self._lots.total < 15 * known[1]:
            ranked = self._rank(lot)
            self._ranked[lot] = self._market.version, self._lots.total, ranked
        else:
            ranked = known[2]
        return None if ranked is None else self._with_most_tied_first(ranked)

    def _rank(self, lot: int) -> Ranked | None:
        lots, market = self._lots, self._market
        offers = np.flatnonzero(self.suited(lot))
        if not len(offers):
            return None
        tier = lots.tier[lot]
        total = int(lots.total_of_tier[tier])
        holds = np.full(len(offers), min(total, lots.forcing.most_on_one), np.int64)
        for demand, room in zip(lots.demand_of_tier[tier].tolist(), market.room, strict=True):
            if demand:
                holds = np.minimum(holds, room[offers] * total // demand)
        holds = np.maximum(holds, 1)
        cost = market.price[offers] * _FINE // holds
        order = np.lexsort((offers, -holds, cost))
        best = order[: int(((cost == cost[order[0]]) & (holds == holds[order[0]])).sum())]
        return Ranked(offers[order], offers[best], holds[order], {})

    def _with_most_tied_first(self, ranked: Ranked) -> Ranked:
        """Among equally cheap places, prefers that with the most assigned pods; pods without a place fill its nodes."""
        if len(ranked.equals) == 1:
            return ranked
        tied = self._lots.tied[self._place_of_offer[ranked.equals]]
        order = np.lexsort((ranked.equals, -tied))
        ranked.offers[: len(order)] = ranked.equals[order]
        return ranked

    def of_look(self, ranked: Ranked, look: int) -> Indices:
        """The ranked offers of a virtual node, cheapest first."""
        mask = ranked.by_look.get(look)
        if mask is None:
            mask = ranked.by_look[look] = np.sort(ranked.offers[self._market.look[ranked.offers] == look])
        return mask

    def nodes(self, lot: int, ranked: Ranked) -> int:
        """Number of nodes of the best offer needed for all pods of the tier."""
        return -(-int(self._lots.total_of_tier[self._lots.tier[lot]]) // int(ranked.holds[0]))

    def tried(self, ranked: Ranked, is_last: bool) -> list[int]:
        """The offers to try by filling: only the best one while it is known from before."""
        top = int(ranked.offers[0])
        known = self._best.get(top)
        if known is not None and not is_last and known in ranked.offers:
            return [known]
        result: list[int] = []
        seen: set[bytes] = set()
        for offer in ranked.offers.tolist():
            room = self._market.room[:, offer].tobytes()
            if room not in seen:
                seen.add(room)
                result.append(offer)
            if len(result) == (_TRIED_LAST if is_last else _TRIED):
                break
        return result

    def was_best(self, ranked: Ranked, offer: int) -> None:
        """Records the best offer."""
        self._best[int(ranked.offers[0])] = offer

    def alone(self, lot: int) -> int:
        """The cheapest offer for a single pod of the group; -1 if there is none."""
        result = self._alone.get(lot)
        if result is None or not self._market.open[result]:
            suited = self.suited(lot)
            result = self._alone[lot] = int(suited.argmax()) if suited.any() else -1
        return result


# --- Exact cover: the cheapest nodes for a number of equal pods, then the fewest nodes; exact up to 2,048 pods.
#
# Dynamic programming over the number of pods: first with unlimited offers, then with limited ones in powers of two. Of
# more pods than 2,048, most go to the offer that is cheapest per pod, as long as it is available.

_EXACT = 2048  # pods
_NODES = 13  # low bits that count nodes, below the price
_DEAR = 2**62

_Cover = dict[int, int]  # offer -> nodes
_Some = tuple[int, int, NDArray[np.bool_]]  # offer, nodes, and the numbers of pods for which they are optimal


def cover(count: int, holds: Counts, price: Counts, lasts: Counts) -> list[tuple[int, int]]:
    """Offers with counts, for all pods or as many as there are nodes for. All arrays are by offer."""
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
    """The optimal cover of `count` pods, or of as many as there are nodes for."""
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
    """With unlimited offers: the cost for each number of pods, and one offer of an optimal cover."""
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
    """Unlimited offers, without those that another offer dominates."""
    duration = np.flatnonzero((holds > 0) & (lasts * holds >= count)).tolist()
    kept: list[int] = []
    for offer in sorted(duration, key=lambda at: (-int(holds[at]), int(price[at]), at)):
        if not kept or price[offer] < price[kept[-1]]:
            kept.append(offer)
    return sorted(kept)


def _limited(count: int, holds: Counts, lasts: Counts) -> Iterator[tuple[int, int]]:
    """Limited offers in powers of two that add up to their limit."""
    for offer in np.flatnonzero((holds > 0) & (lasts > 0) & (lasts * holds < count)).tolist():
        left, part = int(lasts[offer]), 1
        while left > 0:
            yield offer, min(part, left)
            left -= part
            part *= 2


def _traced(count: int, some: list[_Some], chosen: Counts, holds: Counts) -> _Cover:
    """The nodes of the optimal cover."""
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
