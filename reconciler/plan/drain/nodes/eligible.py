"""Which nodes are tried, in which order, and why the others are not.

First come those that are candidates already, the oldest first, so that a timer is not reset because another node came
to be tried before; then those that are not ready, those that are used least, those that save most, and of nodes that
are alike those that lose least (start/worth.py). So how many nodes go does not depend on their names, nor on when
their pods began: those decide only between nodes that are alike. Where there was no time for all of them, the next plan
begins with the first that was left out, whatever it is.

Nodes that wait for a pod to complete come after all others: until then they need no room, and take none from nodes that
could go now.
"""

from collections.abc import Iterator, Sequence

import msgspec

from reconciler.model.instant import Instant
from reconciler.model.plan.reason import Reason
from reconciler.plan.containment import planning_for
from reconciler.plan.drain.candidates import EligibilityContext, completing
from reconciler.plan.drain.context import DrainNode
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
