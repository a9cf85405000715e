"""Which decisions only say how things stand: nothing that was asked for is held by them. And which say, of a pool that
is only observed, what would be done or waited for."""

from reconciler.model.plan.action import Hold
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.reason import Facts, Reason
from reconciler.plan.drain import reasons as drains
from reconciler.plan.guards.observing import Observation, observation_behind
from reconciler.plan.holds import standstill
from reconciler.plan.scaling import reasons as scaling
from reconciler.plan.smart_pods import reasons as smart_pods

# In a pool that is only observed nothing waits for these.
_SUPPOSED: frozenset[type[Facts]] = scaling.SUPPOSED | drains.SUPPOSED
RESTING: frozenset[type[Facts]] = drains.RESTING | scaling.RESTING | smart_pods.RESTING | standstill.RESTING


def is_at_rest(decision: Decision) -> bool:
    """What waits for its time, or for its pods: a marked node, a candidate, one that is emptied; a pod whose place
    is kept, or that is being served."""
    return is_resting(decision.reason) and isinstance(decision.act, Hold)


def is_resting(reason: Reason) -> bool:
    """Whether a hold with this reason is at rest."""
    return type(reason.facts) in RESTING


def supposed_by(inputs: Inputs, decision: Decision) -> Observation | None:
    """Why a decision is only supposed; None where it is carried out, and where a hold is true as it is."""
    waits = isinstance(decision.act, Hold) and type(decision.reason.facts) in _SUPPOSED
    return observation_behind(inputs, decision) if decision.would or waits else None
