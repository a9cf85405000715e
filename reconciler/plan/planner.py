"""Inputs become a Plan: each planner in its turn, over one draft; the same inputs give the same bytes."""

from hashlib import sha256

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model.cluster.kinds import SEEN
from reconciler.model.cluster.observed import Observed, Unread
from reconciler.model.instant import Instant
from reconciler.model.planned.action import Hold
from reconciler.model.planned.consequence import Consequence
from reconciler.model.planned.decision import Decision
from reconciler.model.planned.inputs import Inputs
from reconciler.model.planned.memory import Memory
from reconciler.model.planned.plan import Plan
from reconciler.plan.draft import Draft, Planner, Verdict
from reconciler.plan.guards import of_another_cluster
from reconciler.plan.manifests.planner import manifests
from reconciler.plan.removal import why_untouchable

# The kinds that the planners go by, as titles of kinds.SEEN: where another could not be read, no plan is worse for it.
LOOKED_AT = frozenset(
    each.title for each in SEEN if each.field in {"nodes", "pods", "budgets", "node_pools", "node_claims", "kept"}
)

# In this order: an earlier one has the first choice of subjects.
PLANNERS: tuple[Planner, ...] = (manifests,)


def plan(inputs: Inputs, fleet: Fleet) -> Plan:
    """What to do now. `fleet` is of the same Observed as the inputs."""
    draft = Draft(fleet)
    decisions: list[Decision] = []
    verdicts: list[Verdict] = []
    for planner in PLANNERS:
        verdict = planner(inputs, draft)
        verdicts.append(verdict)
        for decision in verdict.decisions:
            settled = _settled(inputs, draft, decision)
            if not isinstance(settled.act, Hold):
                draft.claim(settled)
            decisions.append(settled)
    memory: Memory = next((each.memory for each in reversed(verdicts) if each.memory is not None), inputs.memory)
    wakes = [each.wake_at for each in verdicts if each.wake_at is not None]
    decided = tuple(decisions)
    consequences = tuple(each for verdict in verdicts for each in verdict.consequences if _comes(inputs, each))
    wake_at: Instant | None = min(wakes, default=None)
    digest = _digest(decided, memory, wake_at)
    return Plan(digest, decided, consequences, memory, inputs.hints, wake_at)


def _settled(inputs: Inputs, draft: Draft, decision: Decision) -> Decision:
    """The one place where guards, mode and others' hands are minded, whatever the planner thought."""
    if isinstance(decision.act, Hold):
        return decision
    if holder := draft.claimed_by(decision.subject):
        raise AssertionError(f"{decision.planner} acts on {decision.subject.title}, which {holder} acts on already")
    why = of_another_cluster(inputs, decision.pool) or why_untouchable(draft.fleet, decision)
    if why is not None:
        return msgspec.structs.replace(decision, act=Hold(), reason=why)
    return msgspec.structs.replace(decision, would=observes(inputs, decision.pool))


def _comes(inputs: Inputs, consequence: Consequence) -> bool:
    """Whether what it follows from is done at all."""
    return consequence.cause == "standing" or of_another_cluster(inputs, consequence.pool) is None


def unread_of_use(observed: Observed) -> tuple[Unread, ...]:
    """What could not be read of all that plans go by."""
    return tuple(each for each in observed.unread if each.kind in LOOKED_AT)


def observes(inputs: Inputs, pool: str) -> bool:
    """Whether the pool is only looked at."""
    declared = inputs.desired.pool(pool) if pool else None
    return declared is not None and declared.spec.mode == "Observe"


def _digest(decisions: tuple[Decision, ...], memory: Memory, wake_at: Instant | None) -> str:
    encoded = msgspec.json.encode((decisions, memory, wake_at), order="sorted")
    return f"sha256:{sha256(encoded).hexdigest()}"
