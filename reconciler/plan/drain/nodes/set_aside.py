"""Owner of which nodes take no pods of others in one plan, whatever room they have, and why: of those nothing is asked.

A pod that no other node would take is told of these too: an empty node stands there with all its room, and still none
is moved to it.
"""

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from reconciler.fleet.rows import Mask
from reconciler.fleet.snapshot.rejections import Rejections
from reconciler.plan.drain.codes.figures import Aside, AsideCause, NodesWithoutRoom
from reconciler.plan.drain.context import DrainContext


class ExcludedNodes:
    """For one plan; looked up when the first pod finds no place."""

    def __init__(self, context: DrainContext) -> None:
        self._context, self._rows = context, context.fleet.snapshot.rows

    def no_room(self, ruled_out: Rejections, takes: Mask, own: Iterable[str]) -> NodesWithoutRoom:
        """Why no node takes a pod, those that were not asked included. `takes`: rows that were asked, `own`: names of
        nodes that it leaves, or that go with these."""
        rest: Mask = self._rows.standing & ~takes
        rest[[self._rows.row_of[name] for name in own if name in self._rows.row_of]] = False
        asides: list[Aside] = []
        candidates = self._marked | ~self._rows.alive
        masks: tuple[tuple[AsideCause, Mask], ...] = (*self._known, ("candidate", candidates), ("other", rest))
        for why, mask in masks:
            if nodes := int((rest & mask).sum()):
                asides.append(Aside(why, nodes))
            rest = rest & ~mask
        return NodesWithoutRoom(ruled_out, tuple(asides))

    @cached_property
    def _known(self) -> tuple[tuple[AsideCause, Mask], ...]:
        """Why, and the rows; each node is told of once, by the first that applies."""
        fleet, rows = self._context.fleet, self._rows
        row_of, counting = rows.row_of, fleet.occupancy.counting
        leaving = [row_of[each.name] for each in fleet.nodes_unsettled if each.name in row_of]
        unready = [row_of[each.name] for each in fleet.nodes_unfit if not each.is_ready]
        upgraded = [row_of[each.name] for each in fleet.nodes_unfit if each.is_ready]
        empty = [row for name, row in row_of.items() if not counting[name]]
        found: dict[AsideCause, list[int]] = {
            "leaving": leaving,
            "notReady": unready,
            "driverUpgrade": upgraded,
            "empty": empty,
        }
        return tuple((why, self._mask(rows)) for why, rows in found.items())

    @cached_property
    def _marked(self) -> Mask:
        """Candidates already; others are once places are found for their pods, and then they are gone in thought."""
        return self._mask(
            [self._rows.row_of[each.name] for each in self._context.drain_nodes if each.candidate is not None]
        )

    def _mask(self, rows: list[int]) -> Mask:
        mask: Mask = np.zeros_like(self._rows.alive)
        mask[rows] = True
        return mask
