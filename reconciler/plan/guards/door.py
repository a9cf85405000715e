"""The one door that every decision passes, whatever its planner thought: a guard for another cluster, what is suspended
or frozen, others' hands, and the mode of the pool."""

from collections.abc import Iterable

import msgspec

from reconciler.model.planned.action import Hold
from reconciler.model.planned.consequence import Consequence
from reconciler.model.planned.decision import Decision
from reconciler.model.planned.inputs import Inputs
from reconciler.model.planned.reason import Reason
from reconciler.plan.draft import Draft, Verdict
from reconciler.plan.guards.elsewhere import of_another_cluster
from reconciler.plan.guards.frozen import Freezes
from reconciler.plan.guards.stage import Stage
from reconciler.plan.guards.taken import taken
from reconciler.plan.removal import why_opted_out, why_untouchable


class Door:
    """What the decisions of one plan are held against."""

    def __init__(self, inputs: Inputs, draft: Draft) -> None:
        self._inputs = inputs
        self._draft = draft
        self._freezes = Freezes(inputs, draft.fleet)

    def passed(self, verdict: Verdict) -> tuple[tuple[Decision, ...], tuple[Consequence, ...]]:
        """Its decisions as they may be, and those consequences that can still come of them."""
        stage = Stage(self._draft.fleet, self._inputs.now, verdict.consequences)
        decisions = tuple(self._settled(stage, each) for each in verdict.decisions)
        barred = _barred(verdict.decisions, decisions)
        left = (each for each in verdict.consequences if each.cause == "standing" or each.node_pool not in barred)
        return decisions, tuple(left)

    def _settled(self, stage: Stage, decision: Decision) -> Decision:
        if isinstance(decision.act, Hold):
            return decision
        if holder := self._draft.claimed_by(decision.subject):
            raise AssertionError(f"{decision.planner} acts on {decision.subject.title}, which {holder} acts on already")
        held = self._why_not(stage, decision)
        if held is not None:
            return msgspec.structs.replace(decision, act=held[1], reason=held[0])
        settled = msgspec.structs.replace(decision, would=observes(self._inputs, decision.pool))
        self._draft.claim(settled)
        return settled

    def _why_not(self, stage: Stage, decision: Decision) -> tuple[Reason, Hold] | None:
        if why := of_another_cluster(self._inputs, decision.pool):
            return why, Hold()
        nodes = frozenset(each.mark.name for each in taken(stage, decision) if each.mark.kind == "Node")
        if still := self._freezes.why_still(decision, nodes):
            return still
        why = why_untouchable(self._draft.fleet, decision)
        if why is not None:
            return why, Hold()
        opted_out = why_opted_out(self._draft.fleet, decision, self._inputs.now) if nodes else None
        return (opted_out.reason, Hold(opted_out.until)) if opted_out is not None else None


def observes(inputs: Inputs, pool: str) -> bool:
    """Whether the pool is only looked at."""
    declared = inputs.desired.pool(pool) if pool else None
    return declared is not None and declared.spec.mode == "Observe"


def _barred(asked: Iterable[Decision], settled: Iterable[Decision]) -> frozenset[str]:
    """NodePools that were to be edited or deleted, and are not."""
    return frozenset(
        before.subject.name
        for before, after in zip(asked, settled, strict=True)
        if before.subject.kind == "NodePool" and isinstance(after.act, Hold) and not isinstance(before.act, Hold)
    )
