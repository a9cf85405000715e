"""Owner of what may come to nodes of one look: the lots that it allows, at most some thousands of them at a time.

With more lots than that a stretch of them is looked at, which is like the whole; as it is used up the next ones follow.
So the work for one pod does not grow with the number of all pods.
"""

import numpy as np

from reconciler.fleet.binpack.nodes.pod_groups import ANYWHERE, Lots
from reconciler.fleet.binpack.offers import Indices
from reconciler.fleet.rows import Counts, Mask

_MOST = 4096


class PodGroupView:
    """Lots by position; sizes are those of these lots alone."""

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
        """Leaves out lots that are used up, once these are many, and looks at the next ones."""
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
        self.sizes: Counts = np.ascontiguousarray(lots.sizes[used].T)  # a row a resource
        self.largest: list[int] = self.sizes.max(axis=1, initial=0).tolist()
        self.group: Indices = lots.group[chosen]
        self.profile: Indices = lots.profile[chosen]
        self.plain: Mask = lots.plain[chosen]
        self.all_plain = bool(self.plain.all())
        self.tier: Indices = lots.tier[chosen]
