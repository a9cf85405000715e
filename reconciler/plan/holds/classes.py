"""Which holds of a plan are blocked, and which of those count for the change that the plan is of.

The class of a hold stands on the declaration of its reason (`reasons.py`). A pool that only observes or is suspended
asks for nothing, so none of its holds is blocked.

Without a base, a blocked hold counts where it is on a declared object, or on an object that a person agreed to lose.
With a base, it counts where it is on an object of the change, or where the base has no such hold on the same subject.
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
from reconciler.plan.reason_catalog import REASONS
from reconciler.plan.reasons import is_held as is_declared_held
from reconciler.plan.scaling import reasons as scaling
from reconciler.plan.smart_pods import reasons as smart_pods


class ChangeScope(msgspec.Struct, frozen=True):
    """The policies that a change adds, edits or removes, and the plan of its base on the same cluster."""

    policies: frozenset[PolicyKey]
    base: Plan


def hold_class(inputs: Inputs, decision: Decision) -> HoldClass | None:
    """None for an action."""
    if not isinstance(decision.act, Hold):
        return None
    declared = inputs.desired.pool(decision.pool) if decision.pool else None
    if declared is not None and (declared.spec.suspend or declared.spec.mode == "Observe"):
        return "waiting"
    found = REASONS.get(decision.reason.code)
    return found.hold if found is not None else "waiting"


def is_held(decision: Decision) -> bool:
    """Whether a person or a guard holds it, whatever the class of the hold; else a hold goes on by itself."""
    found = REASONS.get(decision.reason.code) if isinstance(decision.act, Hold) else None
    return found is not None and is_declared_held(found)


def blocked_holds(inputs: Inputs, decisions: Iterable[Decision], scope: ChangeScope | None) -> tuple[Decision, ...]:
    """The blocked holds that count, in the order of the plan."""
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
    """By which the same hold is found in another plan: its subject, and its reason wherever that was written."""
    return decision.subject, decision.reason.facts


# --- Which decisions only say how things stand: nothing that was asked for is held by them. And which say, of a pool
# that is only observed, what would be done or waited for.

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
