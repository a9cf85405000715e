"""What must hold of each gate that is lifted."""

from collections.abc import Iterator

from reconciler.model.plan.action import Ungate
from reconciler.plan.draft import takes_node_away
from reconciler.plan.feature.invariant import Case, Invariant


def _let_onto_what_goes(case: Case) -> Iterator[str]:
    going = {each.decision.subject.name for each in case.acted if takes_node_away(each.decision)}
    for each in case.acted:
        if isinstance(each.act, Ungate) and each.act.node in going:
            yield f"{each.title}, on Node/{each.act.node}"


INVARIANTS = (Invariant("no pod is let onto a node that the plan takes away", _let_onto_what_goes),)
