"""Fills one node with pods."""

from functools import cache

import numpy as np

from reconciler.fleet.binpack.inputs import Steps
from reconciler.fleet.binpack.nodes.host_rules import HostOccupancy
from reconciler.fleet.binpack.nodes.offer_choice import ResourcePrices
from reconciler.fleet.binpack.nodes.pod_groups import FINE, Lots, PodGroupView
from reconciler.fleet.binpack.offers import Indices, OfferMarket
from reconciler.fleet.rows import Counts, Mask

# --- Owner of one node's pods while the node is being filled; taken pods are reserved in their groups until given back.


class NodeLoad:
    """Groups and their pod counts; `room` is the total capacity for pods."""

    __slots__ = ("_lots", "_steps", "content", "crowd", "room", "used", "view")

    def __init__(self, lots: Lots, view: PodGroupView, first: Mask, steps: Steps) -> None:
        self._lots = lots
        self._steps = steps
        self.view = view
        self.crowd = HostOccupancy(lots.profiles, first)
        self.content: dict[int, int] = {}
        self.room: Counts = np.zeros(len(lots.demand), np.int64)
        self.used: Counts = np.zeros(len(lots.demand), np.int64)

    def open(self, tier: int) -> Mask:
        """The view positions of one tier that allow one more pod."""
        view, lots = self.view, self._lots
        self._steps.take(len(view.lots))
        mask: Mask = lots.left[view.lots] > 0
        if len(view.tiers) > 1:
            mask &= view.tier == tier
        if not view.all_plain:
            mask &= self.crowd.welcome[view.profile]
        fits: Mask | None = None
        for free, size, largest in zip((self.room - self.used).tolist(), view.sizes, view.largest, strict=True):
            if free < largest:
                fits = size <= free if fits is None else fits & (size <= free)
        if fits is not None:
            mask &= fits[view.size]
        return mask

    def take(self, at: int, count: int = 1) -> None:
        """Takes pods from a view position."""
        lots = self._lots
        lot = int(self.view.lots[at])
        lots.reserve(lot, count)
        self.used += lots.sizes[lots.size[lot]] * count
        self.content[lot] = self.content.get(lot, 0) + count
        if not self.view.all_plain:
            self.crowd.admit(lots.profiles.all[lots.profile[lot]], count)

    def take_most_left(self, among: Mask) -> bool:
        """Takes one pod of the size and group with the largest remaining share, so that all run out together."""
        share = self._lots.share[self.view.lots] + (self._lots.group_share[self.view.group] << FINE)
        at = int(np.where(among, share, -1).argmax())
        if not among[at]:
            return False
        self.take(at)
        return True

    def take_sizes(self, sizes: list[int], tier: int) -> bool:
        """Takes one pod of each size, if its tier is open; returns whether any was taken."""
        taken = [self.take_most_left(self.open(tier) & (self.view.size == size)) for size in sizes]
        return any(taken)

    def give_back(self) -> None:
        """Gives all pods back."""
        for lot, count in self.content.items():
            self._lots.reserve(lot, -count)


# --- Fills a node of a given capacity.
#
# First, the pods that few offers fit. While many more pods fit, a mixture in proportion to all pending pods, so that
# the remaining pods stay as easy to pack as at first. When few more fit, the pods that leave the least free room;
# finally the best pair.

_FEW = 6
_LAST = 2


class Filling:
    """The filling rules, with the groups to draw from."""

    def __init__(self, lots: Lots) -> None:
        self._lots = lots

    def fill(self, load: NodeLoad, room: Counts, worth: ResourcePrices) -> None:
        """Fills the available room."""
        load.room = room
        for tier in load.view.tiers:
            while self._add(load, tier, worth):
                pass

    def _add(self, load: NodeLoad, tier: int, worth: ResourcePrices) -> bool:
        """Adds some pods; returns whether any was added."""
        among = load.open(tier)
        if not among.any():
            return False
        more = self._how_many(load, among)
        if more > _FEW:
            return self._take_mixture(load, among, more, tier)
        if more > _LAST:
            return self._take_closest(load, among)
        return self._take_pair(load, among, tier, worth)

    def _how_many(self, load: NodeLoad, among: Mask) -> int:
        """How many pods of average size would fit."""
        view = load.view
        counts = np.where(among, self._lots.left[view.lots], 0)
        total = int(counts.sum())
        of_size = np.bincount(view.size, weights=counts, minlength=view.sizes.shape[1]).astype(np.int64)
        result = total
        for free, sizes in zip((load.room - load.used).tolist(), view.sizes, strict=True):
            requested = int((sizes * of_size).sum())
            if requested:
                result = min(result, free * total // requested)
        return result

    def _take_mixture(self, load: NodeLoad, among: Mask, more: int, tier: int) -> bool:
        """Takes from each group in proportion to its remaining pods."""
        view, lots = load.view, self._lots
        if not view.all_plain and self._take_ruled(load, among, more, tier):
            return True
        at = np.flatnonzero(among & view.plain)
        if not len(at):
            return load.take_most_left(among)
        left = lots.left[view.lots[at]]
        total, wanted = int(left.sum()), more - _LAST
        take = left * wanted // total if total > wanted else left
        short = wanted - int(take.sum())
        if short > 0:
            some = np.flatnonzero(take < left)[:short]
            take[some] += 1
        at, take = at[take > 0], take[take > 0]
        sums = np.cumsum(take * view.sizes[:, view.size[at]], axis=1)
        fits: Mask = np.asarray((sums <= (load.room - load.used)[:, None]).all(axis=0))
        fitting = len(fits) if fits.all() else int(fits.argmin())
        for position, count in zip(at[:fitting].tolist(), take[:fitting].tolist(), strict=True):
            load.take(position, count)
        return fitting > 0 or load.take_most_left(among)

    def _take_ruled(self, load: NodeLoad, among: Mask, more: int, tier: int) -> bool:
        """Takes pods with host rules in due proportion, one by one, since each may exclude others."""
        ruled = among & ~load.view.plain
        left = self._lots.left[load.view.lots]
        waiting, total = int(left[ruled].sum()), int(left[among].sum())
        held = sum(load.content.values())
        due = -(-(held + more) * waiting // total)
        before = ruled_held = sum(count for lot, count in load.content.items() if not self._lots.plain[lot])
        while ruled_held < due and load.take_most_left(load.open(tier) & ruled):
            ruled_held += 1
        return ruled_held > before

    def _take_closest(self, load: NodeLoad, among: Mask) -> bool:
        """Takes one pod whose size best fills the free room."""
        view = load.view
        free = (load.room - load.used).tolist()
        distance = np.zeros(view.sizes.shape[1])
        for left, room, sizes in zip(free, load.room.tolist(), view.sizes, strict=True):
            if room:
                over = (left - sizes) / room
                distance += over * over
        reachable = np.zeros(len(distance), bool)
        reachable[view.size[among]] = True
        best = int(np.where(reachable, distance, np.inf).argmin())
        return load.take_most_left(among & (view.size == best))

    def _take_pair(self, load: NodeLoad, among: Mask, tier: int, worth: ResourcePrices) -> bool:
        pairs = Pairs(load, among, worth)
        fits = (pairs.amounts <= (load.room - load.used)[:, None]).all(axis=0)
        best = int(np.where(fits, pairs.worth, -1).argmax())
        return load.take_sizes(pairs.sizes(best), tier) or load.take_most_left(among)


# --- The best pair of pods, or single pod, to complete a nearly full node.

_MOST_SIZES = 64


class Pairs:
    """All pairs of pod sizes that could be added to a node; one of the two may be empty."""

    __slots__ = ("_first", "_second", "_sizes", "amounts", "worth")

    def __init__(self, load: NodeLoad, among: Mask, worth: ResourcePrices) -> None:
        view = load.view
        is_open = np.zeros(view.sizes.shape[1], bool)
        is_open[view.size[among]] = True
        sizes = np.flatnonzero(is_open)
        if len(sizes) > _MOST_SIZES:
            sizes = sizes[(np.arange(_MOST_SIZES) * len(sizes)) // _MOST_SIZES]
        self._sizes = sizes
        amounts = np.zeros((len(view.sizes), len(sizes) + 1), np.int64)
        amounts[:, :-1] = view.sizes[:, sizes]
        self._first, self._second = _each_two(len(sizes) + 1)
        self.amounts: Counts = amounts[:, self._first] + amounts[:, self._second]
        each = worth.of(amounts)
        self.worth: Counts = each[self._first] + each[self._second]

    def sizes(self, pair: int) -> list[int]:
        """The sizes of a pair, as numbered in the view."""
        return [int(self._sizes[at]) for at in (self._first[pair], self._second[pair]) if at < len(self._sizes)]


@cache
def _each_two(count: int) -> tuple[Indices, Indices]:
    first, second = np.triu_indices(count)
    return first.astype(np.intp), second.astype(np.intp)


# --- Fills one of the nodes that host rules force anyway, with an equal share of the pods.
#
# As many nodes are needed as there are pods with mutual anti-affinity, so all other pods share these nodes instead of
# nodes of their own. Then each node should be full: after a share of the mixture of all pending pods, the last two pods
# and the offer are chosen together, with the least paid free room.

_OFFERS = 12


class EvenFill:
    """The rules for such nodes, with the groups to draw from."""

    def __init__(self, lots: Lots, market: OfferMarket) -> None:
        self._lots = lots
        self._market = market
        self._largest: tuple[Indices, ResourcePrices, Counts] | None = None

    def fill(self, load: NodeLoad, offers: Indices, tier: int, worth: ResourcePrices) -> None:
        """Takes a share for a node of one of the offers; nothing if the pods that force the node do not fit there."""
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
        """The capacity of the most valuable offer; nearly always the same from node to node."""
        if self._largest is None or self._largest[0] is not offers or self._largest[1] is not worth:
            room = self._market.room[:, offers]
            self._largest = offers, worth, room[:, int(worth.of(room).argmax())]
        return self._largest[2]

    def _finish(self, load: NodeLoad, offers: Indices, tier: int, worth: ResourcePrices) -> None:
        """Chooses the last pods, so that the best offer for them has the least priced free room."""
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
