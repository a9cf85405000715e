"""A Plan: decisions, what they make Karpenter do, what to remember, and when to look again."""

import msgspec

from reconciler.model.instant import Instant
from reconciler.model.plan.capacity import Purchase
from reconciler.model.plan.consequence import Consequence
from reconciler.model.plan.decision import Decision, PlannerFailure
from reconciler.model.plan.evaluation import DrainEligibility, SizeEvaluation
from reconciler.model.plan.guard_verdict import GuardVerdict
from reconciler.model.plan.memory import Hints, Memory


class Plan(msgspec.Struct, frozen=True):
    """Its effects are carried out in this order: check, save memory, apply, publish."""

    digest: str
    decisions: tuple[Decision, ...]
    consequences: tuple[Consequence, ...]  # what a guard holds included: it comes once that is approved
    memory: Memory
    hints: Hints
    wake_at: Instant | None
    guarded: tuple[GuardVerdict, ...] = ()  # what each guard says to it, where it counted anything or is full
    sizes: tuple[SizeEvaluation, ...] = ()  # each NodeProvisioner that is not suspended, by order and name
    troubles: tuple[PlannerFailure, ...] = ()  # planners that raised, and for which pools
    weighed: tuple[DrainEligibility, ...] = ()  # each node of a pool that a DrainPolicy names, by name
    purchases: tuple[Purchase, ...] = ()  # nodes that pools are to get, by pool
