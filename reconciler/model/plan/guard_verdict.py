"""What a guard counted in a plan, what it allows, and whether it let the plan pass."""

from typing import Literal

import msgspec

from reconciler.model.instant import Instant
from reconciler.model.problem import Origin

# The names of the limits in a ChangeGuard, without their `max_`; in the order in which they are told.
Measure = Literal["removed_nodes", "removed_percent", "disrupted_gpus", "deleted_node_pools"]
Period = Literal["plan", "hour"]


class GuardCount(msgspec.Struct, frozen=True, gc=False):
    """One limit, and what there is of what it limits: in this plan, or in the hour that ends with it."""

    measure: Measure
    period: Period
    counted: int
    allowed: int
    origin: Origin
    pool: str = ""  # of a percentage: the pool that has the highest
    before: int = 0  # of an hour: what there was without this plan
    parts: tuple[tuple[str, int], ...] = ()  # what it is made of, in words, and how much of it
    expected: int = 0  # what drains will take later, within the limit; told in reports alone

    @property
    def exceeded(self) -> bool:
        return self.counted > self.allowed


class Needed(msgspec.Struct, frozen=True, gc=False):
    """The ceilings that an approval of this plan would need; None where the guard's own limit will do."""

    removed_nodes: int | None = None
    removed_percent: int | None = None
    disrupted_gpus: int | None = None
    deleted_node_pools: int | None = None


class GuardVerdict(msgspec.Struct, frozen=True, gc=False):
    """One guard's judgment."""

    guard: str
    origin: Origin
    counts: tuple[GuardCount, ...]
    held: int = 0  # decisions that it holds
    would: bool = False  # of pools that only observe: told, and nothing is held
    until: Instant | None = None  # when there is room again, where only the hour is full
    approvals: tuple[str, ...] = ()  # names of the ChangeApprovals that let something pass
    needed: Needed = Needed()
    needed_objects: tuple[str, ...] = ()  # titles of the policies that an approval would have to name
    needed_losses: tuple[str, ...] = ()  # titles of the objects whose loss it would have to agree to
    alone: tuple[str, ...] = ()  # titles of what would pass by itself, where something else does not
    by_the_hour: tuple[str, ...] = ()  # limits of perPlan that would let all of it go bit by bit below perHour
    too_large: int = 0  # nodes to be drained later that exceed a limit each by itself; told in reports alone

    @property
    def blocks(self) -> bool:
        """Whether something is not done because of it."""
        return self.held > 0

    @property
    def exceeded(self) -> tuple[GuardCount, ...]:
        """What there is more of than is allowed, approved or not."""
        return tuple(each for each in self.counts if each.exceeded)


# --- A Mark: what was taken away or disrupted, and when that began; guards count each once, over restarts.

MarkedKind = Literal["Node", "Pod", "NodePool"]


class DisruptionRecord(msgspec.Struct, frozen=True, gc=False, order=True):
    """One node, pod or NodePool; of a node that left by another's doing, too, since it left all the same."""

    at: Instant  # when it was marked, or when it was first seen leaving
    kind: MarkedKind
    name: str
    uid: str = ""  # nothing for a NodeClaim whose Node had not appeared
    claim: str = ""  # uid of a node's NodeClaim
    pool: str = ""  # the GpuPool, or else the NodePool, that it was of
    goes: bool = False  # for good: it is not replaced
    gpus: int = 0  # in use on it then
    approvals: tuple[str, ...] = ()  # names of the ChangeApprovals that let it pass
    own: bool = True  # False: we did not cause it


# --- An Imagined taint: what a node of a pool in mode Observe would bear, were the pool acted on.


class ObservedTaint(msgspec.Struct, frozen=True, gc=False, order=True):
    """By the uid of the node: another node of its name starts afresh."""

    node: str
    uid: str
    key: str
    value: str
    effect: str
