"""A Plan: decisions, their effects through Karpenter, memory, and the next planning time."""

import msgspec

from reconciler.model.instant import Instant
from reconciler.model.plan.capacity import Purchase
from reconciler.model.plan.consequence import Consequence
from reconciler.model.plan.decision import Decision, PlannerFailure
from reconciler.model.plan.evaluation import DrainEligibility, SizeEvaluation
from reconciler.model.plan.guard_verdict import GuardVerdict
from reconciler.model.plan.memory import Hints, Memory


class Plan(msgspec.Struct, frozen=True):
    """Its effects are executed in this order: check, save memory, apply, publish."""

    digest: str
    decisions: tuple[Decision, ...]
    consequences: tuple[Consequence, ...]  # including those of held decisions, which happen after approval
    memory: Memory
    hints: Hints
    wake_at: Instant | None
    guarded: tuple[GuardVerdict, ...] = ()  # the verdict of each guard that counted anything or is full
    sizes: tuple[SizeEvaluation, ...] = ()  # each NodeProvisioner that is not suspended, by order and name
    troubles: tuple[PlannerFailure, ...] = ()  # failed planners and their pools
    weighed: tuple[DrainEligibility, ...] = ()  # each node of a pool that a DrainPolicy names, by name
    purchases: tuple[Purchase, ...] = ()  # nodes that pools will get, by pool
