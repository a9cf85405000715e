"""A Plan: decisions, what they make Karpenter do, what to remember, and when to look again."""

import msgspec

from reconciler.model.instant import Instant
from reconciler.model.planned.consequence import Consequence
from reconciler.model.planned.decision import Decision
from reconciler.model.planned.evaluated import Evaluated
from reconciler.model.planned.guarded import Guarded
from reconciler.model.planned.memory import Hints, Memory
from reconciler.model.planned.purchase import Purchase
from reconciler.model.planned.trouble import Trouble
from reconciler.model.planned.weighed import Weighed


class Plan(msgspec.Struct, frozen=True):
    """Its effects are carried out in this order: check, save memory, apply, publish."""

    digest: str
    decisions: tuple[Decision, ...]
    consequences: tuple[Consequence, ...]  # what a guard holds included: it comes once that is approved
    memory: Memory
    hints: Hints
    wake_at: Instant | None
    guarded: tuple[Guarded, ...] = ()  # what each guard says to it, where it counted anything or is full
    sizes: tuple[Evaluated, ...] = ()  # each NodeProvisioner that is not suspended, by order and name
    troubles: tuple[Trouble, ...] = ()  # planners that raised, and for which pools
    weighed: tuple[Weighed, ...] = ()  # each node of a pool that a DrainPolicy names, by name
    purchases: tuple[Purchase, ...] = ()  # nodes that pools are to get, by pool
