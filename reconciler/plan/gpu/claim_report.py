"""What the gpu feature reports about GpuClaims: their pods, the GPUs of the pods, and what waiting pods wait for."""

from typing import Literal

import msgspec

from reconciler.model.plan.decision import Obstacle, Ref
from reconciler.model.plan.feature_report import FeatureReport
from reconciler.plan.capacity.refusals import ClaimUnusable

Phase = Literal["Waiting", "Bound", "Ended"]


class AllocationScore(msgspec.Struct, frozen=True, gc=False):
    """The quality of the GPUs of a pod, as the board of the node describes them."""

    is_one_island: bool
    smallest_gbps: int  # of any pair; 0 for a single GPU
    sum_gbps: int  # of all pairs
    best_gbps: int  # the smallest bandwidth of a pair that the claim gets on the same node without other pods
    is_bandwidth_known: bool  # of all pairs; an unknown bandwidth counts as 0


class Allocation(msgspec.Struct, frozen=True, gc=False):
    """The GPUs that Leases lend to a pod."""

    node: str
    devices: tuple[int, ...]  # ids, ascending
    uuids: tuple[str, ...]  # in the order of the ids; empty where unknown
    score: AllocationScore | None = None  # None: the report of the node does not have all of these GPUs
    is_by_kubelet: bool = False  # allocation: plugin: Leases count GPUs, and the kubelet chooses them


# --- What a pod waits for, as far as its claim decides it. The name of the class is the published reason.


class PoolWithGpusAbsent(msgspec.Struct, frozen=True, gc=False, tag=True):
    """No declared pool that the claim allows has the requested GPUs."""

    pool: str = ""  # the pool that the claim names


class PoolsObserved(msgspec.Struct, frozen=True, gc=False, tag=True):
    """All pools that can serve the claim are suspended or in mode Observe."""

    pools: tuple[str, ...]


class NodesAbsent(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The pools that can serve the claim have no ready node that stays."""

    pools: tuple[str, ...]


class GpusLacking(msgspec.Struct, frozen=True, gc=False, tag=True):
    """No node has the requested GPUs free."""

    nodes: int  # of the pools that can serve the claim
    node: str  # the node that lacks least
    obstacle: Obstacle  # of that node


class GpusFree(msgspec.Struct, frozen=True, gc=False, tag=True):
    """A node has the requested GPUs free: the scheduler has not looked yet, or other requirements exclude the node."""

    node: str


class BindingBegun(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The pod holds GPUs and is not bound yet."""

    node: str


class WaitNotEvaluated(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Too many claims wait: this one was not evaluated."""


ClaimWait = (
    ClaimUnusable
    | PoolWithGpusAbsent
    | PoolsObserved
    | NodesAbsent
    | GpusLacking
    | GpusFree
    | BindingBegun
    | WaitNotEvaluated
)


def code_of(wait: ClaimWait) -> str:
    """The published reason."""
    return f"Claim{wait.state.value.capitalize()}" if isinstance(wait, ClaimUnusable) else type(wait).__name__


# --- The cheapest change of a claim that would help.

ChangedField = Literal["policy", "model", "memory", "count", "poolName", "suspend"]


class ClaimChange(msgspec.Struct, frozen=True, gc=False):
    """A change of one field of the claim, and where a pod of the changed claim gets its GPUs."""

    field: ChangedField
    value: str = ""  # empty: without the field
    node: str = ""  # a node with the GPUs free
    pool: str = ""  # otherwise, a pool that may have one more node


class ClaimPod(msgspec.Struct, frozen=True, gc=False):
    """A pod that names the claim."""

    pod: Ref
    phase: Phase
    allocation: Allocation | None = None
    wait: ClaimWait | None = None  # of a waiting pod


class ClaimUse(msgspec.Struct, frozen=True, gc=False):
    """The pods of one claim."""

    claim: Ref  # without a uid if the claim does not exist
    waiting: int = 0
    bound: int = 0
    ended: int = 0
    pods: tuple[ClaimPod, ...] = ()  # waiting ones first; at most MOST_PODS
    change: ClaimChange | None = None  # for waiting pods; None if none helps, or none is needed
    best_effort_in: tuple[str, ...] = ()  # pools with allocation: plugin, where no island can be guaranteed

    @property
    def all_pods(self) -> int:
        return self.waiting + self.bound + self.ended

    @property
    def wait(self) -> ClaimWait | None:
        """What the first waiting pod waits for."""
        return next((each.wait for each in self.pods if each.wait is not None), None)


MOST_PODS = 100  # listed for each claim


class PoolGpus(msgspec.Struct, frozen=True, gc=False):
    """GPUs of the nodes of one pool."""

    pool: str
    lent: int  # with a Lease
    free: int  # healthy, and not in use


class WaitingClaims(msgspec.Struct, frozen=True, gc=False):
    """Claims whose first waiting pods wait for the same reason, by `code_of`."""

    reason: str
    claims: int
    pods: int  # all waiting pods of these claims
    first: Ref  # by namespace and name


class ClaimReport(msgspec.Struct, FeatureReport, frozen=True, tag=True):
    """Report of the gpu feature. Empty while nodes, pods, Leases or claims can't be read. The report does not grow with
    the number of claims: `claim_uses.use_of_claim` answers for a single one.
    """

    claims: tuple[ClaimUse, ...] = ()  # with waiting pods, or with another status than the published one; the first few
    waiting: tuple[WaitingClaims, ...] = ()  # all claims with waiting pods, also absent ones; by reason
    pools: tuple[PoolGpus, ...] = ()  # by name; only while there are claims
