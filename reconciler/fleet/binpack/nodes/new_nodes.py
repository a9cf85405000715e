"""Owner of the nodes launched so far, and of their free capacity."""

import numpy as np

from reconciler.fleet.binpack.inputs import Steps
from reconciler.fleet.binpack.nodes.host_rules import HostOccupancy, Profile
from reconciler.fleet.binpack.nodes.pod_groups import ANYWHERE, Lots
from reconciler.fleet.binpack.offers import Indices, OfferMarket
from reconciler.fleet.rows import Counts, Mask


class BinpackNode:
    """One new node: its groups with pod counts, and its offer."""

    __slots__ = ("content", "offer", "place", "used")

    def __init__(self, offer: int, place: int, content: dict[int, int], used: Counts) -> None:
        self.offer = offer
        self.place = place
        self.content = content
        self.used = used


class NewNodes:
    """The nodes in launch order; each with the cheapest offer that holds its pods."""

    def __init__(self, lots: Lots, market: OfferMarket, place_of_offer: Indices) -> None:
        self.all: list[BinpackNode] = []
        self._lots = lots
        self._market = market
        self._place_of_offer = place_of_offer

    def cheapest(self, content: dict[int, int], used: Counts, place: int) -> int | None:
        """The cheapest offer for such a node in a place; None if there is none."""
        found = (
            self._market.holding(used)
            & (self._place_of_offer == place)
            & self.allowed_looks(content)[self._market.look]
        )
        return int(found.argmax()) if found.any() else None

    def allowed_looks(self, content: dict[int, int]) -> Mask:
        """The virtual nodes that all of the pods allow."""
        lots = self._lots
        masks = {int(lots.mask[lot]) for lot in content}
        mask: Mask = np.asarray(lots.masks[sorted(masks)].all(axis=0))
        return mask

    def buy(self, offer: int, content: dict[int, int], used: Counts, times: int = 1) -> None:
        """Launches nodes with the same pods each."""
        self._market.take(offer, times)
        place = int(self._place_of_offer[offer])
        self.all += [BinpackNode(offer, place, dict(content), used.copy()) for _ in range(times)]

    def add(self, node: BinpackNode, lot: int, offer: int) -> None:
        """Adds a pod to a node, with another offer if needed."""
        if offer != node.offer:
            self._market.take(node.offer, -1)
            self._market.take(offer, 1)
            node.offer = offer
        self._lots.take({lot: 1}, 1)
        node.content[lot] = node.content.get(lot, 0) + 1
        node.used = node.used + self._lots.sizes[self._lots.size[lot]]

    def shrink(self, node: BinpackNode, used: Counts) -> None:
        """Switches a node to the cheapest offer for its remaining pods."""
        node.used = used
        self._market.take(node.offer, -1)
        offer = self.cheapest(node.content, used, node.place)
        node.offer = node.offer if offer is None else offer
        self._market.take(node.offer, 1)

    def crowd(self, node: BinpackNode) -> HostOccupancy:
        """The occupancy of the node."""
        profiles = self._lots.profiles
        host_occupancy = HostOccupancy(profiles, profiles.first())
        for lot, count in node.content.items():
            host_occupancy.admit(profiles.all[self._lots.profile[lot]], count)
        return host_occupancy

    def free(self) -> Counts:
        """Free capacity of each node: one row per resource."""
        offers = [each.offer for each in self.all]
        used = np.array([each.used for each in self.all], np.int64).reshape(len(offers), len(self._market.room))
        return self._market.room[:, offers] - used.T


# --- Places the last pods onto nodes that are already launched.
#
# Some have free room; for others, a larger offer may cost less than one more node.

_TRIED = 24  # nodes considered for a larger offer
_ASKED = 512  # nodes with room that are checked for conflicts with their pods


class Squeezing:
    """The rules, with the nodes and groups."""

    def __init__(self, lots: Lots, market: OfferMarket, nodes: NewNodes, steps: Steps) -> None:
        self._lots = lots
        self._market = market
        self._nodes = nodes
        self._crowds: dict[int, HostOccupancy] = {}
        self._steps = steps

    def fill_free_room(self) -> None:
        """Places each pod that fits without a larger offer, largest first."""
        lots, nodes = self._lots, self._nodes
        if not nodes.all:
            return
        free = nodes.free()
        place = np.array([each.place for each in nodes.all], np.intp)
        for lot in self._waiting():
            if self._steps.are_spent:
                return
            self._steps.take(len(nodes.all))
            size = lots.sizes[lots.size[lot]]
            fits = (free >= size[:, None]).all(axis=0)
            if lots.place[lot] != ANYWHERE:
                fits &= place == lots.place[lot]
            for number in np.flatnonzero(fits)[:_ASKED].tolist():
                while lots.left[lot] and (free[:, number] >= size).all() and self._may_join(number, lot):
                    self._add(number, lot, nodes.all[number].offer)
                    free[:, number] -= size
                if not lots.left[lot]:
                    break

    def into_larger_offers(self, most: int | None) -> None:
        """Places all remaining pods if the cost is at most `most`; without `most`, as many as possible at any cost."""
        lots, nodes = self._lots, self._nodes
        moves: list[tuple[int, int, int]] = []
        spent = 0
        for lot in self._waiting():
            while lots.left[lot]:
                best = self._cheapest_growth(lot)
                if best is None:
                    break
                cost, number, offer = best
                moves.append((number, lot, nodes.all[number].offer))
                self._add(number, lot, offer)
                spent += cost
        if most is not None and (spent > most or lots.total):
            for number, lot, offer in reversed(moves):
                self._take_back(number, lot, offer)

    def _add(self, number: int, lot: int, offer: int) -> None:
        self._crowd(number).admit(self._profile(lot))
        self._nodes.add(self._nodes.all[number], lot, offer)

    def _profile(self, lot: int) -> Profile:
        return self._lots.profiles.all[int(self._lots.profile[lot])]

    def _crowd(self, number: int) -> HostOccupancy:
        """The occupancy of a node, cached: from here on, pods are only added through this method."""
        host_occupancy = self._crowds.get(number)
        if host_occupancy is None:
            host_occupancy = self._crowds[number] = self._nodes.crowd(self._nodes.all[number])
        return host_occupancy

    def _take_back(self, number: int, lot: int, offer: int) -> None:
        node = self._nodes.all[number]
        self._crowds.pop(number, None)
        self._market.take(node.offer, -1)
        self._market.take(offer, 1)
        node.offer = offer
        self._lots.take({lot: 1}, -1)
        node.content[lot] -= 1
        if not node.content[lot]:
            del node.content[lot]
        node.used = node.used - self._lots.sizes[self._lots.size[lot]]

    def _waiting(self) -> list[int]:
        """Groups with remaining pods, largest first."""
        lots = self._lots
        found = np.flatnonzero(lots.left > 0).tolist()
        return sorted(found, key=lambda lot: (*(-lots.sizes[lots.size[lot]]).tolist(), lot))

    def _may_join(self, number: int, lot: int) -> bool:
        lots, node = self._lots, self._nodes.all[number]
        if not lots.masks[lots.mask[lot]][self._market.look[node.offer]]:
            return False
        profile = self._profile(lot)
        return profile.is_plain or self._crowd(number).takes(profile)

    def _cheapest_growth(self, lot: int) -> tuple[int, int, int] | None:
        """The cheapest way to add one more pod: cost, node and new offer."""
        lots, market, nodes = self._lots, self._market, self._nodes
        size = lots.sizes[lots.size[lot]]
        best: tuple[int, int, int] | None = None
        for number in self._likely(lot):
            node = nodes.all[number]
            grown = {**node.content, lot: node.content.get(lot, 0) + 1}
            market.take(node.offer, -1)
            offer = nodes.cheapest(grown, node.used + size, node.place)
            market.take(node.offer, 1)
            self._steps.take()
            if offer is not None:
                found = int(market.price[offer] - market.price[node.offer]), number, offer
                best = found if best is None else min(best, found)
        return best

    def _likely(self, lot: int) -> list[int]:
        """Some nodes that the pod may join, first those that need the least extra capacity."""
        lots, nodes = self._lots, self._nodes
        size = lots.sizes[lots.size[lot]]
        room = self._market.room.max(axis=1, initial=1)
        short = (np.maximum(size[:, None] - nodes.free(), 0) / np.maximum(room, 1)[:, None]).max(axis=0)
        order: Indices = np.argsort(short, kind="stable")
        result: list[int] = []
        profile = self._profile(lot)
        for number in order.tolist():
            node = nodes.all[number]
            if lots.place[lot] not in (ANYWHERE, node.place):
                continue
            if profile.is_plain or self._crowd(number).takes(profile):
                result.append(number)
            if len(result) == _TRIED:
                break
        return result
