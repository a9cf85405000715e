"""Launches node after node, until every pod has a node or no offer fits.

Each step takes the pod that is hardest to place, chooses the offer with the lowest cost per average pod
(offer_choice.py), fills the node (fill.py), and shrinks it to the cheapest offer for its pods. If host rules force more
nodes, every node takes an equal share instead (fill.py). Equal pods alone are divided exactly (offer_choice.py).
"""

from typing import NamedTuple

import numpy as np

from reconciler.fleet.binpack.inputs import Steps
from reconciler.fleet.binpack.nodes.fill import EvenFill, Filling, NodeLoad
from reconciler.fleet.binpack.nodes.new_nodes import NewNodes, Squeezing
from reconciler.fleet.binpack.nodes.offer_choice import Choosing, Ranked, ResourcePrices, cover
from reconciler.fleet.binpack.nodes.pod_groups import Lots, PodGroupView
from reconciler.fleet.binpack.offers import Indices, OfferMarket
from reconciler.fleet.rows import Counts

_FINE = 2**20  # resolution of a node's cost relative to the value of its pods
_SQUEEZED = 64  # maximum number of pods placed one by one onto larger offers


class Filled(NamedTuple):
    """A filled node: groups with pod counts, total requests and place."""

    content: dict[int, int]
    used: Counts
    place: int


class NodeByNodePacker:
    """The packing loop and its state."""

    def __init__(self, market: OfferMarket, lots: Lots, place_of_look: Indices, steps: Steps) -> None:
        self._market = market
        self._lots = lots
        self._place_of_look = place_of_look
        self.nodes = NewNodes(lots, market, place_of_look[market.look])
        self._choosing = Choosing(lots, market, place_of_look[market.look])
        self._filling = Filling(lots)
        self._pacing = EvenFill(lots, market)
        self._squeezing = Squeezing(lots, market, self.nodes, steps)
        self._views: dict[int, PodGroupView] = {}
        self._first = lots.profiles.first()
        self._steps = steps
        self._worth = ResourcePrices(market, lots.demand)
        self._worth_at = lots.total
        self._squeezed_at = 2 * lots.total + 2

    def run(self) -> None:
        """Launches nodes until no more are possible."""
        leads = self._choosing.hardest_first(self._worth, self._first)
        for lot in leads:
            while self._lots.left[lot] and self._is_on() and self._buy_for(lot):
                pass
        if self._lots.total and not self._steps.are_spent:
            self._squeezing.fill_free_room()
            if self._lots.total <= _SQUEEZED:
                self._squeezing.into_larger_offers(None)

    def _is_on(self) -> bool:
        return not self._steps.are_spent and self._market.nodes_left > 0

    def _buy_for(self, lot: int) -> bool:
        """Launches one or several equal nodes for pods of a group and others that fit; returns whether it did."""
        ranked = self._choosing.ranked(lot)
        self._steps.take(len(self._market.price))
        if ranked is None:
            return False
        before = self._lots.total
        nodes = self._choosing.nodes(lot, ranked)
        is_forced = self._lots.forcing.nodes > nodes
        if not is_forced:
            self._squeeze()
            if self._lots.total < before:
                return True
            if self._divide(lot, ranked):
                return True
        self._renew_worth()
        tier = int(self._lots.tier[lot])
        filled = self._share(ranked, tier) if is_forced else None
        if filled is None:
            is_forced, filled = False, self._fullest(ranked, nodes == 1)
        if filled is not None:
            self._commit(filled, is_forced)
        return self._lots.total < before

    def _view(self, look: int) -> PodGroupView:
        pod_group_view = self._views.get(look)
        if pod_group_view is None:
            pod_group_view = self._views[look] = PodGroupView(self._lots, look, int(self._place_of_look[look]))
        else:
            pod_group_view.renew()
        return pod_group_view

    def _load(self, look: int) -> NodeLoad:
        return NodeLoad(self._lots, self._view(look), self._first, self._steps)

    def _place(self, offer: int) -> int:
        return int(self._place_of_look[self._market.look[offer]])

    def _share(self, ranked: Ranked, tier: int) -> Filled | None:
        """The share of pods for one of the forced nodes."""
        look = int(self._market.look[ranked.offers[0]])
        load = self._load(look)
        self._pacing.fill(load, self._choosing.of_look(ranked, look), tier, self._worth)
        load.give_back()
        return Filled(load.content, load.used, self._place(int(ranked.offers[0]))) if load.content else None

    def _fullest(self, ranked: Ranked, is_last: bool) -> Filled | None:
        """The best filling among the first few offers, by value of the pods per cost."""
        best: tuple[int, int, Filled] | None = None
        for offer in self._choosing.tried(ranked, is_last):
            load = self._load(int(self._market.look[offer]))
            self._filling.fill(load, self._market.room[:, offer], self._worth)
            load.give_back()
            place = self._place(offer)
            shrunk = self.nodes.cheapest(load.content, load.used, place) if load.content else None
            if shrunk is not None:
                worth = int(self._worth.of(load.used[:, None])[0]) or 1
                cost = _FINE * int(ResourcePrices.price(self._market.price[shrunk])) // worth
                if best is None or cost < best[0]:
                    best = cost, offer, Filled(load.content, load.used, place)
        if best is None:
            return None
        self._choosing.was_best(ranked, best[1])
        return best[2]

    def _commit(self, filled: Filled, is_forced: bool) -> None:
        """Launches a node for the pods, and as many equal ones as the groups have pods for."""
        lots, market = self._lots, self._market
        content = filled.content
        offer = self.nodes.cheapest(content, filled.used, filled.place)
        if offer is None:
            raise LookupError("no offer has room for the chosen pods")
        times = min(int(lots.left[lot]) // count for lot, count in content.items())
        # Some of the forced nodes must be left for the remaining pods.
        times = max(times // 2, 1) if is_forced else times
        times = min(times, market.buyable(offer))
        if self._is_dearer_than_alone(offer, content):
            for lot, count in content.items():
                alone = self._choosing.alone(lot)
                self._buy(alone, {lot: 1}, lots.sizes[lots.size[lot]], min(count, market.buyable(alone)))
            return
        self._buy(offer, content, filled.used, times)

    def _is_dearer_than_alone(self, offer: int, content: dict[int, int]) -> bool:
        """Whether one node per pod would cost less."""
        price = self._market.price
        if price[offer] <= price[0] * sum(content.values()):
            return False
        return bool(price[offer] > sum(int(price[self._choosing.alone(lot)]) * count for lot, count in content.items()))

    def _buy(self, offer: int, content: dict[int, int], used: Counts, times: int) -> None:
        if times > 0:
            self._lots.take(content, times)
            self.nodes.buy(offer, content, used, times)

    def _divide(self, lot: int, ranked: Ranked) -> bool:
        """Launches all nodes for a group at once if no other group can share them; returns whether it did."""
        lots, market = self._lots, self._market
        profile = lots.profiles.all[lots.profile[lot]]
        if lots.left[lot] != lots.total:
            return False
        most = min((cap // profile.means[at] for at, cap in profile.rules.items() if at in profile.means), default=None)
        size = lots.sizes[lots.size[lot]]
        holds = np.zeros(len(market.price), np.int64)
        # Of each shape only the cheapest offer: all offers of a shape share its node limit.
        offers = np.sort(ranked.offers)
        offers = offers[np.unique(market.shape[offers], return_index=True)[1]]
        holds[offers] = lots.left[lot] if most is None else most
        for amount, room in zip(size.tolist(), market.room, strict=True):
            if amount:
                holds = np.minimum(holds, room // amount)
        lasts = np.array([market.buyable(offer) for offer in range(len(holds))], np.int64)
        moved = False
        for offer, nodes in cover(int(lots.left[lot]), holds, market.price, lasts):
            hold = int(holds[offer])
            full = min(nodes, market.buyable(offer), int(lots.left[lot]) // hold)
            self._buy(offer, {lot: hold}, size * hold, full)
            rest = min(int(lots.left[lot]), hold)
            if full < nodes and rest and market.buyable(offer):
                self._buy(offer, {lot: rest}, size * rest, 1)
            moved = True
        return moved

    def _squeeze(self) -> None:
        """Once few pods remain, places them onto existing new nodes, with larger offers if cheaper than a new node."""
        lots = self._lots
        few = lots.total <= len(self.nodes.all) // 8 + 16 and 2 * lots.total <= self._squeezed_at
        if not self.nodes.all or not (few or lots.total <= _SQUEEZED) or lots.total == self._squeezed_at:
            return
        self._squeezing.fill_free_room()
        if 0 < lots.total <= _SQUEEZED:
            self._squeezing.into_larger_offers(self._price_of_more_nodes())
        self._squeezed_at = lots.total

    def _price_of_more_nodes(self) -> int:
        """Estimated cost of separate nodes for the remaining pods: the lowest of the available estimates."""
        lots, price = self._lots, self._market.price
        left = np.flatnonzero(lots.left).tolist()
        offers = [self._choosing.alone(lot) for lot in left]
        if -1 in offers:
            return 0
        alone = sum(int(price[at] * lots.left[lot]) for at, lot in zip(offers, left, strict=True))
        return min(alone, self._price_of_average_pods(), *self._price_together())

    def _price_together(self) -> list[int]:
        """The price of one node for all remaining pods, if one offer fits; ignores host rules."""
        lots = self._lots
        content = {lot: int(lots.left[lot]) for lot in np.flatnonzero(lots.left).tolist()}
        held = self._market.holding(lots.demand) & self.nodes.allowed_looks(content)[self._market.look]
        return [int(self._market.price[held].min())] if held.any() else []

    def _price_of_average_pods(self) -> int:
        """The cost if all remaining pods were average pods of the hardest tier."""
        lots, result = self._lots, 0
        left = np.flatnonzero(lots.left)
        for lot in left[np.unique(lots.tier[left], return_index=True)[1]].tolist():
            ranked = self._choosing.ranked(lot)
            if ranked is not None:
                result += self._choosing.nodes(lot, ranked) * int(self._market.price[ranked.offers[0]])
        return result

    def _renew_worth(self) -> None:
        """Recomputes resource prices: the scarce resource may change as pods are placed."""
        if 16 * self._lots.total < 15 * self._worth_at:
            self._worth, self._worth_at = ResourcePrices(self._market, self._lots.demand), self._lots.total
