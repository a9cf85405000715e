"""Invariants of removed gates."""

from collections.abc import Iterator

from reconciler.model.plan.decision import Ungate
from reconciler.plan.draft import takes_node_away
from reconciler.plan.feature.invariant import Invariant, InvariantInput


def _let_onto_leaving_nodes(case: InvariantInput) -> Iterator[str]:
    leaving = {each.decision.subject.name for each in case.acted if takes_node_away(each.decision)}
    for each in case.acted:
        if isinstance(each.act, Ungate) and each.act.node in leaving:
            yield f"{each.title}, on Node/{each.act.node}"


INVARIANTS = (Invariant("no gate is removed for a node that the plan removes", _let_onto_leaving_nodes),)
