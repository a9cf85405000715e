"""Which offers suit a pod, and which of them costs the least for an average pod of those that wait."""

from typing import NamedTuple

import numpy as np

from reconciler.fleet.binpack.nodes.pod_groups import ANYWHERE, Lots
from reconciler.fleet.binpack.nodes.resource_prices import ResourcePrices
from reconciler.fleet.binpack.offers import Indices, OfferMarket
from reconciler.fleet.rows import Counts, Mask

_FINE = 2**20  # parts of a micro-dollar a pod
_TRIED, _TRIED_LAST = 4, 8  # offers; more where all that is left fits onto one node


class Ranked(NamedTuple):
    """Offers, the best first, and how many average pods each holds."""

    offers: Indices
    equals: Indices  # those that are as good as the first
    holds: Counts
    by_look: dict[int, Indices]  # those of a look, the cheapest first, once they were asked for


class Choosing:
    """The rules, with what is on offer and who waits."""

    def __init__(self, lots: Lots, market: OfferMarket, place_of_offer: Indices) -> None:
        self._lots = lots
        self._market = market
        self._place_of_offer = place_of_offer
        self._ranked: dict[int, tuple[int, int, Ranked | None]] = {}
        self._best: dict[int, int] = {}
        self._alone: dict[int, int] = {}

    def hardest_first(self, worth: ResourcePrices, may_lead: Mask) -> list[int]:
        """Lots that few offers will do for, then those that are worth the most; not those who must find somebody."""
        lots = self._lots
        if not len(lots):
            return []
        worths = worth.of(lots.sizes.T)[lots.size]
        order = np.lexsort((np.arange(len(lots)), -worths, lots.tier))
        result: list[int] = order[may_lead[lots.profile[order]]].tolist()
        return result

    def suited(self, lot: int) -> Mask:
        """Offers that a pod of the lot could have for itself."""
        lots, market = self._lots, self._market
        mask: Mask = market.holding(lots.sizes[lots.size[lot]]) & lots.masks[lots.mask[lot]][market.look]
        if lots.place[lot] != ANYWHERE:
            mask &= self._place_of_offer == lots.place[lot]
        return mask

    def ranked(self, lot: int) -> Ranked | None:
        """The offers that suit a lot, by what they cost an average pod of those that are as hard to place."""
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
        """Of places that cost the same, the one first that most pods are tied to; all others fill their nodes up."""
        if len(ranked.equals) == 1:
            return ranked
        tied = self._lots.tied[self._place_of_offer[ranked.equals]]
        order = np.lexsort((ranked.equals, -tied))
        ranked.offers[: len(order)] = ranked.equals[order]
        return ranked

    def of_look(self, ranked: Ranked, look: int) -> Indices:
        """Those of the ranked offers that have a look, the cheapest first."""
        mask = ranked.by_look.get(look)
        if mask is None:
            mask = ranked.by_look[look] = np.sort(ranked.offers[self._market.look[ranked.offers] == look])
        return mask

    def nodes(self, lot: int, ranked: Ranked) -> int:
        """How many of the best offer are wanted for all that are as hard to place."""
        return -(-int(self._lots.total_of_tier[self._lots.tier[lot]]) // int(ranked.holds[0]))

    def tried(self, ranked: Ranked, is_last: bool) -> list[int]:
        """The offers that are worth filling to see which comes out best: only one while that was found out before."""
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
        """Remembers what came out best."""
        self._best[int(ranked.offers[0])] = offer

    def alone(self, lot: int) -> int:
        """The cheapest offer for a pod of the lot by itself; -1 where there is none."""
        result = self._alone.get(lot)
        if result is None or not self._market.open[result]:
            suited = self.suited(lot)
            result = self._alone[lot] = int(suited.argmax()) if suited.any() else -1
        return result
