"""What pods are worth: what they would cost if every node were full, by prices of resources that no offer undercuts.

For each resource the cheapest offer says what a unit costs at least, and demand times that is a bound on the bill. The
resource with the highest bound is the scarce one: it alone would do as a price, but others come close, and a node is
well filled only when it is full of those too. So prices are mixed, by the eighth power of the bounds. As each of them
alone undercuts every offer, so does the mixture: no node is worth more than it costs.
"""

import numpy as np

from reconciler.fleet.binpack.offers import OfferMarket
from reconciler.fleet.rows import Counts

_PARTS = 1024  # of a micro-dollar: small pods are worth something too
_MOST = 2**62  # of pods that are larger than any node


class ResourcePrices:
    """The price of a unit of each resource, in parts of a micro-dollar."""

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
        """Of each column of amounts, in parts of a micro-dollar."""
        mask = np.zeros(amounts.shape[1:])
        for rate, amount in zip(self._rates, amounts, strict=True):
            if rate:
                mask = mask + rate * amount
        return np.rint(np.minimum(mask, _MOST)).astype(np.int64)

    @staticmethod
    def price(micro_dollars: Counts) -> Counts:
        """A price in the same parts."""
        return micro_dollars * _PARTS


def _eighth_power(number: float) -> float:
    square = number * number
    fourth = square * square
    return fourth * fourth
