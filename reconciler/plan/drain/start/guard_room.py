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
from reconciler.plan.guards.ledger import Ledger
from reconciler.plan.guards.removals import taken
from reconciler.plan.guards.sums import FIELDS, Roll, Sums, limit_of


class PlanRoom:
    """For one plan."""

    def __init__(self, site: DrainContext) -> None:
        inputs = site.inputs
        guards = [each for each in inputs.desired.guards if not each.spec.suspend and not is_elsewhere(inputs, each)]
        self._stage, self._roll = GuardContext(site.fleet, site.inputs), Roll(site.fleet)
        self._sums: list[tuple[Declared[ChangeGuard], Sums]] = [(each, Sums(self._roll)) for each in guards]
        self.is_empty = True  # nothing is taken by the plan so far
        if guards:
            self._count_others(site)

    def _count_others(self, site: DrainContext) -> None:
        """What planners before this one take."""
        ledger = Ledger(
            self._stage, site.inputs.memory.marks, frozenset(each.name for each in site.inputs.desired.pools)
        )
        for decision in site.draft.claims:
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
            so_far = Sums(self._roll) if alone else sums
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
