"""Fills one of the nodes that rules of hosts force anyway, with as much as is each one's share.

As many nodes must be bought as there are pods that keep away from each other, so all others go with them rather than
onto nodes of their own. What counts then is that each node is full: after its share of a mixture like that of all
that wait, the last two pods and the offer are chosen together, such that the least is paid for nothing.
"""

import numpy as np

from reconciler.fleet.binpack.nodes.node_load import NodeLoad
from reconciler.fleet.binpack.nodes.pairs import Pairs
from reconciler.fleet.binpack.nodes.pod_groups import Lots
from reconciler.fleet.binpack.nodes.resource_prices import ResourcePrices
from reconciler.fleet.binpack.offers import Indices, OfferMarket
from reconciler.fleet.rows import Counts

_OFFERS = 12
_LAST = 2


class EvenFill:
    """The rules of filling such nodes, with the lots they draw on."""

    def __init__(self, lots: Lots, market: OfferMarket) -> None:
        self._lots = lots
        self._market = market
        self._largest: tuple[Indices, ResourcePrices, Counts] | None = None

    def fill(self, load: NodeLoad, offers: Indices, tier: int, worth: ResourcePrices) -> None:
        """Takes a share for a node of one of the offers; nothing where the pods that force the node can't be there."""
        lots = self._lots
        load.room = self._most_room(offers, worth)
        nodes = lots.forcing.nodes
        share = -(-int(lots.total_of_tier[tier]) // nodes)
        for members in lots.forcing.tightest():
            load.take_most_left(load.open(tier) & members[load.view.profile])
        if not load.content:
            return
        while sum(load.content.values()) < share - _LAST:
            among = load.open(tier)
            behind = among & (load.view.plain ^ lots.ruled_lag)
            if not load.take_most_left(behind) and not load.take_most_left(among):
                break
        self._finish(load, offers, tier, worth)

    def _most_room(self, offers: Indices, worth: ResourcePrices) -> Counts:
        """Of the offer whose room is worth the most; from one node to the next it is nearly always the same."""
        if self._largest is None or self._largest[0] is not offers or self._largest[1] is not worth:
            room = self._market.room[:, offers]
            self._largest = offers, worth, room[:, int(worth.of(room).argmax())]
        return self._largest[2]

    def _finish(self, load: NodeLoad, offers: Indices, tier: int, worth: ResourcePrices) -> None:
        """The last pods, such that on the offer that then suits the least room is left over, by its price."""
        market = self._market
        suited = offers[(market.room[:, offers] >= load.used[:, None]).all(axis=0)][:_OFFERS]
        pairs = Pairs(load, load.open(tier), worth)
        amounts = pairs.amounts + load.used[:, None]
        fits = np.ones((len(suited), amounts.shape[1]), bool)
        for amount, room in zip(amounts, market.room[:, suited], strict=True):
            fits &= amount <= room[:, None]
        worths = np.where(fits, pairs.worth, -1)
        best = worths.argmax(axis=1)
        waste = worth.price(market.price[suited]) - worths[np.arange(len(suited)), best]
        load.take_sizes(pairs.sizes(int(best[int(waste.argmin())])), tier)
