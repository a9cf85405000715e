"""Owner of the pods without a node, in groups of equal size, host rules, place and allowed virtual nodes."""

from typing import NamedTuple

import numpy as np

from reconciler.fleet.binpack.nodes.host_rules import Forcing, Profile, Profiles
from reconciler.fleet.binpack.offers import Indices, OfferMarket
from reconciler.fleet.rows import Counts, Mask
from reconciler.model.cluster.pod import Pod

ANYWHERE = -1
FINE = 20  # bits of a group's remaining share
_GOLDEN = np.uint64(2654435769)  # 2^32 / golden ratio: any slice of such an order is a representative sample

Unit = tuple[Pod, ...]  # pods packed as a unit: nearly always a single pod


class Lot:
    """The key of a group during construction."""

    __slots__ = ("mask", "place", "profile", "size", "units")

    def __init__(self, place: int, profile: Profile, size: int, mask: int) -> None:
        self.place = place  # place, or ANYWHERE
        self.profile = profile
        self.size = size
        self.mask = mask  # the allowed virtual nodes
        self.units: list[Unit] = []


class Gathered(NamedTuple):
    """The input of group construction."""

    lots: list[Lot]
    profiles: Profiles
    sizes: Counts  # requests of each size
    masks: Mask  # allowed virtual nodes of each kind of pod


class Lots:
    """The numbered groups, in an order of which any slice is a representative sample."""

    def __init__(self, gathered: Gathered, market: OfferMarket, places: int) -> None:
        count = len(gathered.lots)
        ranks = np.argsort((np.arange(count, dtype=np.uint64) * _GOLDEN) % np.uint64(2**32), kind="stable")
        lots = [gathered.lots[rank] for rank in ranks.tolist()]
        self.profiles = gathered.profiles
        self.units = [each.units for each in lots]
        self.left: Counts = np.array([len(each.units) for each in lots], np.int64)
        self.first: Counts = np.maximum(self.left, 1)
        self.share: Counts = (self.left << FINE) // self.first
        self.place: Indices = np.array([each.place for each in lots], np.intp)
        self.profile: Indices = np.array([each.profile.number for each in lots], np.intp)
        self.plain: Mask = np.array([each.profile.is_plain for each in lots], bool)
        self.sizes: Counts = gathered.sizes
        self.size: Indices = np.array([each.size for each in lots], np.intp)
        self.masks: Mask = gathered.masks
        self.mask: Indices = np.array([each.mask for each in lots], np.intp)
        # Pods of one size and place; those with host rules separately: none may lag behind, or the last nodes suffer.
        self.group: Indices = distinct(np.stack([self.place, self.plain, self.size], axis=1).astype(np.int64))[1]
        groups = int(self.group.max(initial=-1)) + 1
        self._group_left: Counts = np.zeros(groups, np.int64)
        np.add.at(self._group_left, self.group, self.left)
        self._group_first: Counts = np.maximum(self._group_left, 1)
        self.group_share: Counts = (self._group_left << FINE) // self._group_first
        self.ruled = int(self.left[~self.plain].sum())
        self._ruled_first, self._first_total = self.ruled, int(self.left.sum())
        self.tier = self._tiers(market)
        self.total = self.left_in_all = int(self.left.sum())
        self.demand: Counts = self.sizes[self.size].T @ self.left  # by resource
        tiers = int(self.tier.max(initial=-1)) + 1
        self.total_of_tier: Counts = np.zeros(tiers, np.int64)
        self.demand_of_tier: Counts = np.zeros((tiers, len(market.room)), np.int64)
        np.add.at(self.total_of_tier, self.tier, self.left)
        np.add.at(self.demand_of_tier, self.tier, self.sizes[self.size] * self.left[:, None])
        # The number of pods by place; last, those that may go anywhere.
        self.tied: Counts = np.zeros(places + 1, np.int64)
        np.add.at(self.tied, self.place, self.left)
        self.forcing = Forcing(self.profiles)
        self.forcing.add(self.profile, self.left)

    def __len__(self) -> int:
        return len(self.left)

    @property
    def ruled_lag(self) -> bool:
        """Whether a larger share remains of the pods with host rules than of the others."""
        plain, plain_first = self.left_in_all - self.ruled, self._first_total - self._ruled_first
        return self.ruled * plain_first >= plain * self._ruled_first

    def reserve(self, lot: int, count: int) -> None:
        """Reserves pods for a node that may still be discarded."""
        left = int(self.left[lot]) - count
        self.left[lot] = left
        self.share[lot] = (left << FINE) // int(self.first[lot])
        group = int(self.group[lot])
        left = int(self._group_left[group]) - count
        self._group_left[group] = left
        self.group_share[group] = (left << FINE) // int(self._group_first[group])
        self.left_in_all -= count
        if not self.plain[lot]:
            self.ruled -= count

    def take(self, content: dict[int, int], times: int) -> None:
        """Assigns pods of each group to nodes, `times` times; negative `times` undoes the assignment."""
        for lot, count in content.items():
            self.reserve(lot, count * times)
        lots = np.fromiter(content.keys(), np.intp, len(content))
        counts = np.fromiter(content.values(), np.int64, len(content)) * times
        requested = self.sizes[self.size[lots]] * counts[:, None]
        self.total -= int(counts.sum())
        self.demand -= requested.sum(axis=0)
        np.subtract.at(self.total_of_tier, self.tier[lots], counts)
        np.subtract.at(self.demand_of_tier, self.tier[lots], requested)
        np.subtract.at(self.tied, self.place[lots], counts)
        self.forcing.add(self.profile[lots], -counts)

    def _tiers(self, market: OfferMarket) -> Indices:
        """Tiers by the number of fitting offers, considering labels, taints and resource names, not sizes."""
        asks = self.sizes[self.size] > 0
        kinds, kind = distinct(np.concatenate([self.mask[:, None], asks], axis=1).astype(np.int64))
        counts = np.zeros(len(kinds), np.int64)
        for number, row in enumerate(kinds.tolist()):
            has = (market.room[np.array(row[1:], bool)] > 0).all(axis=0)
            counts[number] = (has & self.masks[row[0]][market.look]).sum()
        return np.unique(counts[kind], return_inverse=True)[1].astype(np.intp)


def distinct(rows: Counts) -> tuple[Counts, Indices]:
    """The distinct rows, and for each row its index among them."""
    if not len(rows):
        return rows, np.zeros(0, np.intp)
    mask, inverse = np.unique(rows, axis=0, return_inverse=True)
    return mask, inverse.reshape(-1).astype(np.intp)


# --- View of the groups that one virtual node allows, limited to some thousands of groups at a time.
#
# With more groups, a representative slice is used; when it is used up, the next groups follow. The work per pod thus
# does not grow with the number of pods.

_MOST = 4096


class PodGroupView:
    """Groups by position; `sizes` has only the sizes of these groups."""

    def __init__(self, lots: Lots, look: int, place: int) -> None:
        self._lots = lots
        allowed = lots.masks[:, look][lots.mask] & ((lots.place == ANYWHERE) | (lots.place == place))
        self.tiers: list[int] = np.unique(lots.tier[allowed]).tolist()
        self._waiting = [np.flatnonzero(allowed & (lots.tier == tier)) for tier in self.tiers]
        self._next = [0] * len(self.tiers)
        self._fresh = 0
        self.lots: Indices = np.zeros(0, np.intp)
        self.renew()

    def renew(self) -> None:
        """Drops used-up groups once there are many, and adds the next ones."""
        alive = self.lots[self._lots.left[self.lots] > 0]
        if self._fresh and 2 * len(alive) > self._fresh:
            return
        quota = max(_MOST // max(len(self.tiers), 1), 1)
        chosen = []
        for number, tier in enumerate(self.tiers):
            held = alive[self._lots.tier[alive] == tier]
            start = self._next[number]
            more = self._waiting[number][start : start + quota - len(held)]
            self._next[number] = start + len(more)
            chosen.append(np.concatenate([held, more[self._lots.left[more] > 0]]))
        self._show(np.concatenate(chosen) if chosen else alive)
        if not len(self.lots) and any(
            start < len(waiting) for start, waiting in zip(self._next, self._waiting, strict=True)
        ):
            self._fresh = 0
            self.renew()

    def _show(self, chosen: Indices) -> None:
        lots = self._lots
        self.lots = chosen
        self._fresh = len(chosen)
        used, self.size = np.unique(lots.size[chosen], return_inverse=True)
        self.sizes: Counts = np.ascontiguousarray(lots.sizes[used].T)  # one row per resource
        self.largest: list[int] = self.sizes.max(axis=1, initial=0).tolist()
        self.group: Indices = lots.group[chosen]
        self.profile: Indices = lots.profile[chosen]
        self.plain: Mask = lots.plain[chosen]
        self.all_plain = bool(self.plain.all())
        self.tier: Indices = lots.tier[chosen]
