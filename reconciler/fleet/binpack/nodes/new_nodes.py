"""Owner of the nodes that were bought so far, and of what is left of each."""

import numpy as np

from reconciler.fleet.binpack.nodes.host_rules import HostOccupancy
from reconciler.fleet.binpack.nodes.pod_groups import Lots
from reconciler.fleet.binpack.offers import Indices, OfferMarket
from reconciler.fleet.rows import Counts, Mask


class BinpackNode:
    """One node: lots and how many of each, on an offer."""

    __slots__ = ("content", "offer", "place", "used")

    def __init__(self, offer: int, place: int, content: dict[int, int], used: Counts) -> None:
        self.offer = offer
        self.place = place
        self.content = content
        self.used = used


class NewNodes:
    """The nodes in the order they were bought; each on the cheapest offer that holds its pods."""

    def __init__(self, lots: Lots, market: OfferMarket, place_of_offer: Indices) -> None:
        self.all: list[BinpackNode] = []
        self._lots = lots
        self._market = market
        self._place_of_offer = place_of_offer

    def cheapest(self, content: dict[int, int], used: Counts, place: int) -> int | None:
        """The cheapest offer that such a node could be, in a place; None where there is none."""
        found = (
            self._market.holding(used)
            & (self._place_of_offer == place)
            & self.allowed_looks(content)[self._market.look]
        )
        return int(found.argmax()) if found.any() else None

    def allowed_looks(self, content: dict[int, int]) -> Mask:
        """The looks that all of the pods allow."""
        lots = self._lots
        masks = {int(lots.mask[lot]) for lot in content}
        mask: Mask = np.asarray(lots.masks[sorted(masks)].all(axis=0))
        return mask

    def buy(self, offer: int, content: dict[int, int], used: Counts, times: int = 1) -> None:
        """So many nodes with the same pods each."""
        self._market.take(offer, times)
        place = int(self._place_of_offer[offer])
        self.all += [BinpackNode(offer, place, dict(content), used.copy()) for _ in range(times)]

    def add(self, node: BinpackNode, lot: int, offer: int) -> None:
        """One more pod onto a node, which is of another offer then if need be."""
        if offer != node.offer:
            self._market.take(node.offer, -1)
            self._market.take(offer, 1)
            node.offer = offer
        self._lots.take({lot: 1}, 1)
        node.content[lot] = node.content.get(lot, 0) + 1
        node.used = node.used + self._lots.sizes[self._lots.size[lot]]

    def shrink(self, node: BinpackNode, used: Counts) -> None:
        """To the cheapest offer for the pods that are left on a node."""
        node.used = used
        self._market.take(node.offer, -1)
        offer = self.cheapest(node.content, used, node.place)
        node.offer = node.offer if offer is None else offer
        self._market.take(node.offer, 1)

    def crowd(self, node: BinpackNode) -> HostOccupancy:
        """Who is on the node."""
        profiles = self._lots.profiles
        host_occupancy = HostOccupancy(profiles, profiles.first())
        for lot, count in node.content.items():
            host_occupancy.admit(profiles.all[self._lots.profile[lot]], count)
        return host_occupancy

    def free(self) -> Counts:
        """What is left of each node: a row a resource."""
        offers = [each.offer for each in self.all]
        used = np.array([each.used for each in self.all], np.int64).reshape(len(offers), len(self._market.room))
        return self._market.room[:, offers] - used.T
