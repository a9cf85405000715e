"""Which nodes are tried, in which order, and why the others are not.

First come those that are candidates already, the oldest first, so that a timer is not reset because another node came
to be tried before; then those that are not ready, those that are used least, those that save most, and of nodes that
are alike those that lose least (node_value.py). So how many nodes go does not depend on their names, nor on when
their pods began: those decide only between nodes that are alike. Where there was no time for all of them, the next plan
begins with the first that was left out, whatever it is.

Nodes that wait for a pod to complete come after all others: until then they need no room, and take none from nodes that
could go now.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import msgspec
import numpy as np

from reconciler.fleet.rows import Mask
from reconciler.fleet.snapshot.rejections import Rejections
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Reason
from reconciler.plan.containment import planning_for
from reconciler.plan.drain.candidates import EligibilityContext, completing
from reconciler.plan.drain.codes.words import Aside, AsideCause, NodesWithoutRoom
from reconciler.plan.drain.context import DrainContext, DrainNode
from reconciler.plan.likeness import Likeness, Likenesses


class CandidateOrder(msgspec.Struct, frozen=True):
    """What is tried, in order, and why the others are not."""

    order: tuple[DrainNode, ...]
    refused: dict[str, Reason]  # by the name of a node


def eligible(eligibility: EligibilityContext) -> CandidateOrder:
    """Nothing is changed by it."""
    order: list[DrainNode] = []
    refused: dict[str, Reason] = {}
    for drain_node in eligibility.context.drain_nodes:
        with planning_for(drain_node.pool):
            for rule in eligibility.rules(drain_node):
                if (reason := rule.why_not(eligibility, drain_node)) is not None:
                    refused[drain_node.name] = reason
                    break
            else:
                order.append(drain_node)
    return CandidateOrder(tuple(_in_order(eligibility, order)), refused)


def _in_order(eligibility: EligibilityContext, drain_nodes: Sequence[DrainNode]) -> Iterator[DrainNode]:
    before: list[tuple[Instant, str, DrainNode]] = []
    others: list[tuple[bool, int, int, Likeness, int, str, DrainNode]] = []
    snapshot = eligibility.context.fleet.snapshot
    alike, row_of = snapshot.part(Likenesses), snapshot.rows.row_of
    for each in drain_nodes:
        if (since := each.candidate_since) is not None:
            before.append((since, each.name, each))
        else:
            percent, (saved, lost) = eligibility.usage(each).percent, eligibility.worth.key(each)
            likeness = alike.of(row_of[each.name])
            others.append((each.is_ready, percent, saved, likeness, lost, each.name, each))
    order = [each[-1] for each in sorted(before)] + [each[-1] for each in sorted(others)]
    # What is only told comes last, and so takes no room from what is done.
    turns: dict[tuple[bool, bool], list[DrainNode]] = {}
    for each in order:
        turn = eligibility.context.is_report_only(each), bool(completing(eligibility.context, each.name))
        turns.setdefault(turn, []).append(each)
    for _, some in sorted(turns.items()):
        yield from _from(some, eligibility.context.memory.begin_at)


def _from(order: Sequence[DrainNode], name: str) -> list[DrainNode]:
    """The same, beginning with that one, if it is among them."""
    at = next((place for place, each in enumerate(order) if each.name == name), 0) if name else 0
    return [*order[at:], *order[:at]]


# --- Owner of which nodes take no pods of others in one plan, whatever room they have, and why: of those nothing is
# asked.
#
# A pod that no other node would take is told of these too: an empty node stands there with all its room, and still none
# is moved to it.


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
