"""A guard's counts for a plan, its limits and its verdict."""

from typing import Literal

import msgspec

from reconciler.model.instant import Instant
from reconciler.model.problem import Origin

# The names of the limits in a ChangeGuard, without `max_`, in the order of reports.
Measure = Literal["removed_nodes", "removed_percent", "disrupted_gpus", "deleted_node_pools"]
Period = Literal["plan", "hour"]


class GuardCount(msgspec.Struct, frozen=True, gc=False):
    """One limit and its count: in this plan, or in the hour that ends with this plan."""

    measure: Measure
    period: Period
    counted: int
    allowed: int
    origin: Origin
    pool: str = ""  # for a percentage: the pool with the highest
    before: int = 0  # for the hour: the count without this plan
    parts: tuple[tuple[str, int], ...] = ()  # the parts of the count, with labels
    expected: int = 0  # what drains will use later, within the limit; only in reports

    @property
    def exceeded(self) -> bool:
        return self.counted > self.allowed


class Needed(msgspec.Struct, frozen=True, gc=False):
    """The ceilings that an approval of this plan needs; None if the guard's own limit suffices."""

    removed_nodes: int | None = None
    removed_percent: int | None = None
    disrupted_gpus: int | None = None
    deleted_node_pools: int | None = None


class GuardVerdict(msgspec.Struct, frozen=True, gc=False):
    guard: str
    origin: Origin
    counts: tuple[GuardCount, ...]
    held: int = 0  # number of decisions held
    would: bool = False  # of pools in Observe mode: reported, nothing is held
    until: Instant | None = None  # when capacity is available again, if only the hourly limit is exceeded
    approvals: tuple[str, ...] = ()  # names of the ChangeApprovals that let decisions pass
    needed: Needed = Needed()
    needed_objects: tuple[str, ...] = ()  # titles of the policies that an approval must name
    needed_losses: tuple[str, ...] = ()  # titles of the objects whose loss an approval must accept
    alone: tuple[str, ...] = ()  # titles of objects that would pass alone, if others do not
    by_the_hour: tuple[str, ...] = ()  # limits of perPlan under which all would pass in parts, within perHour
    too_large: int = 0  # nodes to be drained later that each exceed a limit alone; only in reports

    @property
    def blocks(self) -> bool:
        """Whether any decision is held."""
        return self.held > 0

    @property
    def exceeded(self) -> tuple[GuardCount, ...]:
        """The exceeded limits, approved or not."""
        return tuple(each for each in self.counts if each.exceeded)


# --- Disruption records: what was removed or disrupted, and when. Guards count each once, across restarts.

MarkedKind = Literal["Node", "Pod", "NodePool"]


class DisruptionRecord(msgspec.Struct, frozen=True, gc=False, order=True):
    """One node, pod or NodePool. Also recorded for a node that others removed."""

    at: Instant  # when it was tainted, or first seen leaving
    kind: MarkedKind
    name: str
    uid: str = ""  # empty for a NodeClaim without a Node
    claim: str = ""  # uid of the node's NodeClaim
    pool: str = ""  # the GpuPool, or else the NodePool
    goes: bool = False  # permanently: not replaced
    gpus: int = 0  # in use at that time
    approvals: tuple[str, ...] = ()  # names of the ChangeApprovals that let it pass
    own: bool = True  # False: caused by others


# --- Observed taints: taints that nodes of a pool in Observe mode would have in Enforce mode.


class ObservedTaint(msgspec.Struct, frozen=True, gc=False, order=True):
    """Identified by the uid of the node: a new node of the same name starts afresh."""

    node: str
    uid: str
    key: str
    value: str
    effect: str
