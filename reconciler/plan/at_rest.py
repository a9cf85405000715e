"""Which decisions only say how things stand: nothing that was asked for is held by them."""

from reconciler.model.planned.action import Hold
from reconciler.model.planned.decision import Decision
from reconciler.plan.drain import reasons as drains
from reconciler.plan.scaling import reasons as scaling
from reconciler.plan.smart_pods import reasons as smart_pods

_CODES = drains.RESTING | scaling.RESTING | smart_pods.RESTING


def is_at_rest(decision: Decision) -> bool:
    """What waits for its time, or for its pods: a marked node, a candidate, one that is emptied; a pod whose place
    is kept, or that is being served."""
    return decision.reason.code in _CODES and isinstance(decision.act, Hold)
