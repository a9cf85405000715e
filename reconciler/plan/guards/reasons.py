"""Reasons for which a guard holds a decision."""

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

import msgspec

from reconciler.model.cluster.refusal import DecodeRefusal
from reconciler.model.plan.decision import CodeFacts, Facts, Reason, Ref
from reconciler.model.plan.guard_verdict import GuardCount, Measure
from reconciler.plan.guards.frozen import FreezeScope
from reconciler.plan.guards.observing import Observation
from reconciler.plan.guards.set_aside import BehindSetAside
from reconciler.plan.reasons import OfObject


class GuardSum(msgspec.Struct, frozen=True, gc=False):
    """Amount of one measure, and the limit of a guard."""

    measure: Measure
    counted: int
    allowed: int
    pool: str = ""  # pool of a percentage

    @property
    def is_over(self) -> bool:
        return self.counted > self.allowed


class WrongCluster(CodeFacts, frozen=True):
    template = (
        "{guard} is for cluster {wanted}, and this cluster is {found}: no action on guarded objects is carried out "
        "here."
    )
    hold = "blocked"

    guard: Ref
    wanted: str
    found: str


class HeldByGuard(CodeFacts, frozen=True):
    """Base of holds by a guard. An approval can admit the held decision. This class itself is no code."""

    guard: Ref
    held: Reason  # reason of the held decision
    sums: tuple[GuardSum, ...] = ()  # measures beyond their limits


class OverPlanLimit(HeldByGuard, frozen=True):
    template = (
        "this plan exceeds the limits of {guard} ({sums}). Until the plan removes less or is approved, this "
        "change is not carried out: {held:while_held}"
    )
    hold = "blocked"


class HourIsFull(HeldByGuard, frozen=True):
    template = (
        "this plan exceeds the hourly limits of {guard} ({sums}). Until the limits have room again or the change is "
        "approved, this change is not carried out: {held:while_held}"
    )
    hold = "blocked"


class OverHourLimit(HeldByGuard, frozen=True):
    template = (
        "this change alone exceeds the hourly limits of {guard} ({sums}). Until the change removes less or is "
        "approved, the change is not carried out: {held:while_held}"
    )
    hold = "blocked"


class BehindOthers(HeldByGuard, frozen=True):
    template = (
        "an earlier change waits for the hourly limits of {guard}. Until the earlier change is carried out, this "
        "change waits: {held:while_held}"
    )
    hold = "blocked"


class FollowsHeld(OfObject, frozen=True):
    template = "{object} must follow {other}, which is held."

    other: Ref


class ObjectUnversioned(OfObject, frozen=True):
    template = (
        "{object} was read without a uid and a resourceVersion, so the API server could not detect changes since "
        "then: no write is carried out. A cluster file must contain objects as the API server serves them."
    )
    hold = "blocked"


REASONS = (WrongCluster, OverPlanLimit, HourIsFull, OverHourLimit, BehindOthers, FollowsHeld, ObjectUnversioned)


def guard_ref(name: str) -> Ref:
    return Ref("ChangeGuard", "", name)


def sum_of(count: GuardCount) -> GuardSum:
    """The count as a fact of a reason."""
    return GuardSum(count.measure, count.counted, count.allowed, count.pool)


# --- Text for facts of guards.

MEASURES: Mapping[Measure, str] = {
    "removed_nodes": "removed nodes",
    "removed_percent": "removed percent",
    "disrupted_gpus": "disrupted GPUs",
    "deleted_node_pools": "deleted NodePools",
}


def _sum(each: GuardSum) -> str:
    """Text of a sum: removed nodes: 40 of 24 allowed."""
    pool = f" of {each.pool}" if each.pool else ""
    return f"{MEASURES[each.measure]}{pool}: {each.counted} of {each.allowed} allowed"


def _other(facts: BehindSetAside) -> str:
    other = facts.other
    return "/".join(part for part in (other.kind, other.namespace, other.name or "(without a name)") if part)


# By the type of a fact.
WORDS: Mapping[type, Callable[[Any], str]] = {
    GuardSum: _sum,
    Observation: attrgetter("causes_text"),
    DecodeRefusal: attrgetter("why"),
    FreezeScope: attrgetter("words"),
}

# By code: placeholders of the template that are no facts, or have another text than their type.
PARTS: Mapping[type[Facts], Mapping[str, Callable[[Any], str]]] = {
    BehindSetAside: {"other": _other},
}
