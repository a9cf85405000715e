"""A Plan: decisions, what they make Karpenter do, what to remember, and when to look again."""

import msgspec

from reconciler.model.instant import Instant
from reconciler.model.planned.consequence import Consequence
from reconciler.model.planned.decision import Decision
from reconciler.model.planned.memory import Hints, Memory


class Plan(msgspec.Struct, frozen=True):
    """Its effects are carried out in this order: check, save memory, apply, publish."""

    digest: str
    decisions: tuple[Decision, ...]
    consequences: tuple[Consequence, ...]
    memory: Memory
    hints: Hints
    wake_at: Instant | None
