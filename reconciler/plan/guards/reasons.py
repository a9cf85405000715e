"""Why a guard holds something back."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from reconciler.model.cluster.refusal import DecodeRefusal
from reconciler.model.plan.decision import CodeFacts, Facts, Reason, Ref
from reconciler.model.plan.guard_verdict import GuardCount, Measure
from reconciler.plan.guards.frozen import FreezeScope
from reconciler.plan.guards.observing import Observation
from reconciler.plan.guards.set_aside import BehindSetAside


class GuardSum(msgspec.Struct, frozen=True, gc=False):
    """What is counted of one measure, and how much of it a guard allows."""

    measure: Measure
    counted: int
    allowed: int
    pool: str = ""  # of a percentage


class WrongCluster(CodeFacts, frozen=True):
    template = "{guard} is for cluster {wanted}, and this is {found}: nothing is done here to what it guards."
    hold = "blocked"

    guard: Ref
    wanted: str
    found: str


class HeldByGuard(CodeFacts, frozen=True):
    """What holds that a guard imposes have in common: an approval lets what is held pass. No code of its own."""

    guard: Ref
    held: Reason  # of the decision that is held
    sums: tuple[GuardSum, ...] = ()  # that exceed a limit


class OverPlanLimit(HeldByGuard, frozen=True):
    template = (
        "{guard} allows less in one plan ({sums}). Held until the plan takes less, or is approved: {held:while_held}"
    )
    hold = "blocked"


class HourIsFull(HeldByGuard, frozen=True):
    template = (
        "{guard} allows less in any hour ({sums}). Held until there is room, or it is approved: {held:while_held}"
    )
    hold = "blocked"


class OverHourLimit(HeldByGuard, frozen=True):
    template = (
        "{guard} allows less in any hour ({sums}), and this alone is more than that. "
        "Held until it takes less, or is approved: {held:while_held}"
    )
    hold = "blocked"


class BehindOthers(HeldByGuard, frozen=True):
    template = (
        "what comes first waits already for room in the hour that {guard} looks at. Held until that has gone on: "
        "{held:while_held}"
    )
    hold = "blocked"


class FollowsHeld(CodeFacts, frozen=True):
    template = "{object} is to follow {other}, which is held."

    object: Ref
    other: Ref


class ObjectUnversioned(CodeFacts, frozen=True):
    template = (
        "{object} was read without a uid and a resourceVersion, so that the API server could not tell whether it "
        "changed since: nothing is written. A file of a cluster must hold its objects as the API server serves them."
    )
    hold = "blocked"

    object: Ref


REASONS = (WrongCluster, OverPlanLimit, HourIsFull, OverHourLimit, BehindOthers, FollowsHeld, ObjectUnversioned)


def guard_ref(name: str) -> Ref:
    """A ChangeGuard."""
    return Ref("ChangeGuard", "", name)


def sum_of(count: GuardCount) -> GuardSum:
    """As a reason tells it."""
    return GuardSum(count.measure, count.counted, count.allowed, count.pool)


# --- The words of facts that guards give.

MEASURES: Mapping[Measure, str] = {
    "removed_nodes": "removed nodes",
    "removed_percent": "removed percent",
    "disrupted_gpus": "disrupted GPUs",
    "deleted_node_pools": "deleted NodePools",
}


def _sum(each: GuardSum) -> str:
    """40 of 24 removed nodes."""
    words = f"{each.counted} of {each.allowed} {MEASURES[each.measure]}"
    return f"{words} of {each.pool}" if each.pool else words


def _other(facts: BehindSetAside) -> str:
    other = facts.other
    return "/".join(part for part in (other.kind, other.namespace, other.name or "(without a name)") if part)


def _refusal(refusal: DecodeRefusal) -> str:
    return refusal.why


def _scope(scope: FreezeScope) -> str:
    return scope.words


def _observation(observation: Observation) -> str:
    return observation.causes_text


# By the type of a fact.
WORDS: Mapping[type, Callable[[Any], str]] = {
    GuardSum: _sum,
    Observation: _observation,
    DecodeRefusal: _refusal,
    FreezeScope: _scope,
}

# By code, what stands in its template and is no fact, or is written otherwise than by its type.
PARTS: Mapping[type[Facts], Mapping[str, Callable[[Any], str]]] = {
    BehindSetAside: {"other": _other},
}
