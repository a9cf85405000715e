"""Which decisions about drains only say how things stand: nothing that was asked for is held by them."""

from reconciler.model.planned.action import Hold
from reconciler.model.planned.decision import Decision
from reconciler.plan.drain.reasons import PLANNER, RESTING


def is_resting(decision: Decision) -> bool:
    """A candidate that waits for its time, or a node that is emptied and waits for its pods."""
    return decision.planner == PLANNER and decision.reason.code in RESTING and isinstance(decision.act, Hold)
