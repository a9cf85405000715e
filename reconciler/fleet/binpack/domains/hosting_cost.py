"""What it costs to host a pod: the part of the price of a node that it takes of its scarcest resource."""

import numpy as np

from reconciler.fleet.binpack.offers import Indices, OfferMarket
from reconciler.fleet.rows import Counts, Mask

NOWHERE = 2**62
_PARTS = 1024  # of a micro-dollar, in which shares of a node are priced


class Hosting:
    """Owner of the costs that were asked for, by place."""

    def __init__(self, market: OfferMarket, place_of_look: Indices, places: int) -> None:
        self._market = market
        self._place_of_offer = place_of_look[market.look]
        self._places = places
        self._known: dict[tuple[bytes, int], list[int]] = {}

    def costs(self, request: Counts, allowed: Mask) -> list[int]:
        """For each place; NOWHERE where nothing on offer will do."""
        key = request.tobytes(), id(allowed)
        result = self._known.get(key)
        if result is None:
            result = self._known[key] = self._costs(request, allowed)
        return result

    def possible(self, requested: Counts, allowed: list[Mask]) -> Mask:
        """Whether a pod of each class could be on any node that is on offer."""
        result: Mask = np.zeros(len(allowed), bool)
        alike: dict[int, list[int]] = {}
        for number, mask in enumerate(allowed):
            alike.setdefault(id(mask), []).append(number)
        for numbers in alike.values():
            result[numbers] = self._any_holds(requested[numbers], allowed[numbers[0]])
        return result

    def _any_holds(self, requested: Counts, allowed: Mask) -> Mask:
        """Most fit one of the few offers that have the most of something; the others are looked at one by one."""
        offers = np.flatnonzero(self._market.open & allowed[self._market.look])
        mask: Mask = np.zeros(len(requested), bool)
        if not len(offers):
            return mask
        room = self._market.room[:, offers]
        shares = (room / np.maximum(room.max(axis=1, initial=1), 1)[:, None]).sum(axis=0)
        for offer in sorted({int(shares.argmax()), *room.argmax(axis=1).tolist()}):
            mask |= (requested <= room[:, offer]).all(axis=1)
        for number in np.flatnonzero(~mask).tolist():
            mask[number] = bool((room >= requested[number][:, None]).all(axis=0).any())
        return mask

    def _costs(self, request: Counts, allowed: Mask) -> list[int]:
        market = self._market
        will_do = market.holding(request) & allowed[market.look]
        share = np.zeros(len(market.price))
        for amount, room in zip(request.tolist(), market.room, strict=True):
            if amount:
                share = np.maximum(share, amount / np.maximum(room, 1))
        cost = np.where(will_do, np.rint(share * market.price * _PARTS).astype(np.int64), NOWHERE)
        mask = np.full(self._places, NOWHERE, np.int64)
        np.minimum.at(mask, self._place_of_offer, cost)
        costs: list[int] = mask.tolist()
        return costs
