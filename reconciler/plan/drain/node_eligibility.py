"""Nodes that are tried for draining, their order, and why other nodes are excluded.

Existing candidates are evaluated first, oldest first, so their timers keep running. Then follow unready nodes, the
least utilized nodes, and the nodes that save most; among equal nodes (likeness.py) those that lose least work
(node_value.py). So the number of drained nodes depends neither on names nor on the start times of pods: these decide
only between equal nodes. If the previous plan had no time for all nodes, the first skipped node comes first,
whatever it is.

Nodes that wait for a pod to complete come after all other nodes: until then they need no room, and take none from
nodes that could drain now.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from operator import attrgetter

import msgspec
import numpy as np

from reconciler.fleet.rows import Mask
from reconciler.fleet.snapshot.rejections import Rejections
from reconciler.model.plan.decision import Reason
from reconciler.plan.containment import planning_for
from reconciler.plan.drain.candidates import EligibilityContext
from reconciler.plan.drain.codes.words import Aside, AsideCause, NodesWithoutRoom
from reconciler.plan.drain.context import DrainContext, DrainNode
from reconciler.plan.likeness import Likeness, Likenesses

Turn = tuple[bool, bool]  # whether the node is reported only, and whether the node waits for a pod


class CandidateOrder(msgspec.Struct, frozen=True):
    """Nodes to try, in order, and why other nodes are excluded."""

    order: tuple[DrainNode, ...]
    refused: dict[str, Reason]  # by node name


def eligible(eligibility: EligibilityContext) -> CandidateOrder:
    """Nodes to try. Changes nothing."""
    order: list[DrainNode] = []
    refused: dict[str, Reason] = {}
    with planning_for() as planning:
        for drain_node in eligibility.context.drain_nodes:
            planning.pool = drain_node.pool
            for rule in eligibility.rules(drain_node):
                if (reason := rule.why_not(eligibility, drain_node)) is not None:
                    refused[drain_node.name] = reason
                    break
            else:
                order.append(drain_node)
    return CandidateOrder(tuple(_in_order(eligibility, order)), refused)


def _in_order(eligibility: EligibilityContext, drain_nodes: Sequence[DrainNode]) -> Iterator[DrainNode]:
    """`drain_nodes`: by name, which decides between equal nodes."""
    context, worth, rows = eligibility.context, eligibility.worth, eligibility.context.fleet.snapshot.rows
    alike = context.fleet.snapshot.part(Likenesses)

    def key(drain_node: DrainNode) -> tuple[bool, int, int, Likeness, int]:
        saved, lost = worth.key(drain_node)
        percent, likeness = eligibility.usage(drain_node).percent, alike.of(rows.row_of[drain_node.name])
        return drain_node.is_ready, percent, saved, likeness, lost

    before = [each for each in drain_nodes if each.candidate_since is not None]
    before.sort(key=attrgetter("candidate_since"))
    others = sorted((each for each in drain_nodes if each.candidate_since is None), key=key)
    # Report-only nodes come last, so that they take no room from real drains.
    told, completing, turns = context.report_only_pools, context.completing, defaultdict[Turn, list[DrainNode]](list)
    for each in chain(before, others):
        turns[each.pool in told, each.name in completing].append(each)
    for _, some in sorted(turns.items()):
        yield from _from(some, context.memory.begin_at)


def _from(order: Sequence[DrainNode], name: str) -> list[DrainNode]:
    """The same order, rotated to begin with the named node if it is included."""
    at = next((place for place, each in enumerate(order) if each.name == name), 0) if name else 0
    return [*order[at:], *order[:at]]


# --- Nodes that take no pods from other nodes in one plan, whatever room they have, and why. These nodes are not
# searched.
#
# The reason of an unplaced pod mentions them too: people see an empty node with room, and no pod is moved there.


class ExcludedNodes:
    """Excluded nodes of one plan. Computed when the first pod finds no destination."""

    def __init__(self, context: DrainContext) -> None:
        self._context, self._rows = context, context.fleet.snapshot.rows

    def no_room(self, ruled_out: Rejections, takes: Mask, own: Iterable[str]) -> NodesWithoutRoom:
        """Why no node takes a pod, excluded nodes included. `takes`: rows that were searched; `own`: names of the pod's
        node and of nodes that drain together with that node.
        """
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
        """Excluded rows by cause. Each node counts once, under the first cause that applies."""
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
        """Nodes with a candidate taint. Other nodes become candidates when their pods are placed, and the simulation
        then vacates them.
        """
        return self._mask(
            [self._rows.row_of[each.name] for each in self._context.drain_nodes if each.candidate is not None]
        )

    def _mask(self, rows: list[int]) -> Mask:
        mask: Mask = np.zeros_like(self._rows.alive)
        mask[rows] = True
        return mask
