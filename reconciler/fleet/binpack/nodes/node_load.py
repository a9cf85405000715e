"""Owner of one node's pods while it is being filled; what it takes is gone from the lots until it is given back."""

import numpy as np

from reconciler.fleet.binpack.nodes.host_rules import HostOccupancy
from reconciler.fleet.binpack.nodes.pod_groups import FINE, Lots
from reconciler.fleet.binpack.nodes.view import PodGroupView
from reconciler.fleet.binpack.steps import Steps
from reconciler.fleet.rows import Counts, Mask


class NodeLoad:
    """Lots and how many of each; `room` is what its pods may have in all."""

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
        """The positions of the view of one tier that one more pod could come from."""
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
        """So many pods from a position of the view."""
        lots = self._lots
        lot = int(self.view.lots[at])
        lots.reserve(lot, count)
        self.used += lots.sizes[lots.size[lot]] * count
        self.content[lot] = self.content.get(lot, 0) + count
        if not self.view.all_plain:
            self.crowd.admit(lots.profiles.all[lots.profile[lot]], count)

    def take_most_left(self, among: Mask) -> bool:
        """One pod of the size and lot that the largest share is left of, so that all of them run out together."""
        share = self._lots.share[self.view.lots] + (self._lots.group_share[self.view.group] << FINE)
        at = int(np.where(among, share, -1).argmax())
        if not among[at]:
            return False
        self.take(at)
        return True

    def take_sizes(self, sizes: list[int], tier: int) -> bool:
        """A pod of each size where one of the tier is still open; whether there was any."""
        taken = [self.take_most_left(self.open(tier) & (self.view.size == size)) for size in sizes]
        return any(taken)

    def give_back(self) -> None:
        """All of it, as if it had never been taken."""
        for lot, count in self.content.items():
            self._lots.reserve(lot, -count)
