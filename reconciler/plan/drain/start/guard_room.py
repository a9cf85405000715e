"""Owner of how much guards let one plan take, while a batch is put together: what is more waits for the next plan.

A plan that is over a limit of `perPlan` is held in all that it takes (plan/guards/tally.py), and would be so again and
again. Nodes can as well begin in several plans: so no more of them do in one than pass. What is over a limit all by
itself is left to the guard, which says so, and to people; it begins beside nothing else, or it would hold the others.
"""

from collections.abc import Sequence

from reconciler.model.desired import Declared
from reconciler.model.plan.action import Ref
from reconciler.model.policy.change_guard import ChangeGuard
from reconciler.plan.drain.codes.candidacy import GuardAllowsPerPlan
from reconciler.plan.drain.context import DrainContext, DrainNode
from reconciler.plan.guards.cluster_identity import is_elsewhere
from reconciler.plan.guards.context import GuardContext
from reconciler.plan.guards.ledger import DisruptionLedger
from reconciler.plan.guards.removals import taken
from reconciler.plan.guards.sums import FIELDS, DisruptionSums, Roll, limit_of


class PlanRoom:
    """For one plan."""

    def __init__(self, context: DrainContext) -> None:
        inputs = context.inputs
        guards = [each for each in inputs.desired.guards if not each.spec.suspend and not is_elsewhere(inputs, each)]
        self._stage, self._roll = GuardContext(context.fleet, context.inputs), Roll(context.fleet)
        self._sums: list[tuple[Declared[ChangeGuard], DisruptionSums]] = [
            (each, DisruptionSums(self._roll)) for each in guards
        ]
        self.is_empty = True  # nothing is taken by the plan so far
        if guards:
            self._count_others(context)

    def _count_others(self, context: DrainContext) -> None:
        """What planners before this one take."""
        ledger = DisruptionLedger(
            self._stage, context.inputs.memory.marks, frozenset(each.name for each in context.inputs.desired.pools)
        )
        for decision in context.draft.claims:
            for one in taken(self._stage, decision):
                if one.weighs and not ledger.counts_already(one.mark):
                    self.is_empty = False
                    for guard, sums in self._sums:
                        if _guards(guard, one.mark.pool):
                            sums.add(one.mark)

    def why_none(self, nodes: Sequence[DrainNode], *, alone: bool = False) -> GuardAllowsPerPlan | None:
        """The limit that would be passed if these begin too, or if they did alone; None where there is room."""
        if not self._sums:
            return None
        marks = [self._stage.mark(each.node, goes=True) for each in nodes]
        for guard, sums in self._sums:
            so_far = DisruptionSums(self._roll) if alone else sums
            over = so_far.plus(each for each in marks if _guards(guard, each.pool)).over(guard.spec.per_plan)
            if over:
                most, field = limit_of(guard.spec.per_plan, over[0]) or 0, FIELDS[over[0]]
                return GuardAllowsPerPlan(guard=Ref("ChangeGuard", "", guard.name), most=most, field=field)
        return None

    def take(self, nodes: Sequence[DrainNode]) -> None:
        """They begin."""
        self.is_empty = False
        for guard, sums in self._sums:
            for each in nodes:
                if _guards(guard, each.pool):
                    sums.add(self._stage.mark(each.node, goes=True))


def _guards(guard: Declared[ChangeGuard], pool: str) -> bool:
    return bool({"*", pool} & set(guard.spec.pool_names))
