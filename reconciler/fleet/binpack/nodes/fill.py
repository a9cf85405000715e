"""Fills a node that has so much room, as well as can be.

First the pods that few offers will do for. As long as many more fit, a mixture like that of all that wait, so that what
is left for the last nodes is no worse than what the first had. When few more fit, the ones that leave the least room
over; at last the two that are worth the most together.
"""

import numpy as np

from reconciler.fleet.binpack.nodes.node_load import NodeLoad
from reconciler.fleet.binpack.nodes.pairs import Pairs
from reconciler.fleet.binpack.nodes.pod_groups import Lots
from reconciler.fleet.binpack.nodes.resource_prices import ResourcePrices
from reconciler.fleet.rows import Counts, Mask

_FEW = 6
_LAST = 2


class Filling:
    """The rules of filling, with the lots they draw on."""

    def __init__(self, lots: Lots) -> None:
        self._lots = lots

    def fill(self, load: NodeLoad, room: Counts, worth: ResourcePrices) -> None:
        """Takes what the node has room for."""
        load.room = room
        for tier in load.view.tiers:
            while self._add(load, tier, worth):
                pass

    def _add(self, load: NodeLoad, tier: int, worth: ResourcePrices) -> bool:
        """Takes some more; whether there was any."""
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
        """How many pods of the average size among these would fit."""
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
        """Of each lot in proportion to what is left of it."""
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
        """As many of those with rules of hosts as are due, one by one, since each may shut others out."""
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
        """One pod of the size that comes closest to filling what is free."""
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
