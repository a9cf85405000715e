"""Why a guard holds something back."""

import msgspec

from reconciler.model.plan.action import Ref
from reconciler.model.plan.guard_verdict import GuardCount, Measure
from reconciler.model.plan.reason import CodeFacts, Reason


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
