"""A Plan: decisions, their effects through Karpenter, memory, and the next planning time."""

import msgspec

from reconciler.model.instant import Instant
from reconciler.model.plan.consequence import Consequence
from reconciler.model.plan.decision import Decision, PlannerFailure
from reconciler.model.plan.feature_report import FeatureReport, Reporting
from reconciler.model.plan.guard_verdict import GuardVerdict
from reconciler.model.plan.memory import Hints, Memory


class Plan(msgspec.Struct, Reporting, frozen=True):
    """Its effects are executed in this order: check, save memory, apply, publish."""

    digest: str
    decisions: tuple[Decision, ...]
    consequences: tuple[Consequence, ...]  # including those of held decisions, which happen after approval
    memory: Memory
    hints: Hints
    wake_at: Instant | None
    guarded: tuple[GuardVerdict, ...] = ()  # the verdict of each guard that counted anything or is full
    troubles: tuple[PlannerFailure, ...] = ()  # failed planners and their pools
    reports: tuple[FeatureReport, ...] = ()
