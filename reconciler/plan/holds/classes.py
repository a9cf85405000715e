"""Classes of holds: which holds of a plan are blocked, and which blocked holds belong to the planned change.

The reason of a hold declares its class (`reasons.py`). In a pool that is observed or suspended, no person waits for a
change, so all holds of the pool count as waiting.

Without a base, a blocked hold counts if its object is declared, or if a person agreed to lose the object. With a
base, the hold counts if its object belongs to the change, or if the base has no such hold on the same subject.
"""

from collections.abc import Iterable

import msgspec

from reconciler.model.plan.decision import Decision, Facts, Hold, HoldClass, Reason, Ref
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.plan import Plan
from reconciler.plan.causes import PolicyKey, policies_behind
from reconciler.plan.drain import reasons as drains
from reconciler.plan.guards.approvals import Approvals
from reconciler.plan.guards.observing import Observation, observation_behind
from reconciler.plan.holds import standstill
from reconciler.plan.pressure import reasons as pressure
from reconciler.plan.reason_catalog import REASONS
from reconciler.plan.reasons import is_held as is_declared_held
from reconciler.plan.scaling import reasons as scaling
from reconciler.plan.smart_pods import reasons as smart_pods


class ChangeScope(msgspec.Struct, frozen=True):
    """Policies that a change adds, edits or removes, and the plan of the base on the same cluster."""

    policies: frozenset[PolicyKey]
    base: Plan


def hold_class(inputs: Inputs, decision: Decision) -> HoldClass | None:
    """Class of a hold; None for an action."""
    if not isinstance(decision.act, Hold):
        return None
    declared = inputs.desired.pool(decision.pool) if decision.pool else None
    if declared is not None and (declared.spec.suspend or declared.spec.mode == "Observe"):
        return "waiting"
    found = REASONS.get(decision.reason.code)
    return found.hold if found is not None else "waiting"


def is_held(decision: Decision) -> bool:
    """Whether a person or a guard holds the decision, whatever the class of the hold. Other holds end without anybody's
    action.
    """
    found = REASONS.get(decision.reason.code) if isinstance(decision.act, Hold) else None
    return found is not None and is_declared_held(found)


def blocked_holds(inputs: Inputs, decisions: Iterable[Decision], scope: ChangeScope | None) -> tuple[Decision, ...]:
    """Blocked holds that count, in the order of the plan."""
    blocked = [each for each in decisions if hold_class(inputs, each) == "blocked"]
    if not blocked:
        return ()
    if scope is None:
        titles = {
            *Approvals(inputs).losses,
            *(Ref(each.kind, each.namespace, each.name).title for each in inputs.desired.manifests),
        }
        pools = {each.name for each in inputs.desired.pools}
        return tuple(each for each in blocked if each.pool in pools or each.subject.title in titles)
    in_base = {_known_by(each) for each in scope.base.decisions if isinstance(each.act, Hold)}
    return tuple(
        each
        for each in blocked
        if _known_by(each) not in in_base or not scope.policies.isdisjoint(policies_behind(inputs.desired, each))
    )


def _known_by(decision: Decision) -> tuple[Ref, Facts]:
    """Key of a hold in another plan: its subject, and its reason without the origin."""
    return decision.subject, decision.reason.facts


# --- Holds that only report a state and hold back no request; and decisions that are only simulated, in observed pools.

# In an observed pool these holds are simulated.
_SUPPOSED: frozenset[type[Facts]] = scaling.SUPPOSED | drains.SUPPOSED
RESTING: frozenset[type[Facts]] = (
    drains.RESTING | pressure.RESTING | scaling.RESTING | smart_pods.RESTING | standstill.RESTING
)


def is_at_rest(decision: Decision) -> bool:
    """Whether the decision waits for a timer or for its pods: a marked node, a candidate, a draining node; a pod with a
    reserved node, or a pod that is being served.
    """
    return is_resting(decision.reason) and isinstance(decision.act, Hold)


def is_resting(reason: Reason) -> bool:
    """Whether a hold with this reason is at rest."""
    return type(reason.facts) in RESTING


def supposed_by(inputs: Inputs, decision: Decision) -> Observation | None:
    """Why a decision is only simulated; None if it is carried out, or if the hold is real."""
    waits = isinstance(decision.act, Hold) and type(decision.reason.facts) in _SUPPOSED
    return observation_behind(inputs, decision) if decision.would or waits else None
