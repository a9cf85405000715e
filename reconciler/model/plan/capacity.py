"""Capacity of a pool: purchases, limits, shortages and shortfalls."""

from typing import Literal

import msgspec

from reconciler.model.instant import Instant
from reconciler.model.plan.feature_report import FeatureReport
from reconciler.model.policy.scaling import RaisingField

# --- Limits on further nodes of a pool.

LimitSource = Literal[
    "limits",  # of the GpuPool, for one resource
    "maxSize",  # of the NodeProvisioner
    "instanceTypes",  # the GpuPool declares none
]


class CapacityLimit(msgspec.Struct, frozen=True, gc=False, order=True):
    """A limit of a policy."""

    source: LimitSource
    policy: str  # name of the policy
    resource: str = ""  # the limited resource, for `limits`
    amount: str = ""  # empty if no instance type is declared


# Purpose of the node.
Why = Literal["demand", "warmNodes"] | RaisingField
# Stage of the purchase, in chronological order from the node's view.
Stage = Literal[
    "machine",  # the NodeClaim exists, its node does not
    "asked",  # an existing smart pod requests the node
    "request",  # a smart pod that this plan creates requests the node
    "karpenter",  # Karpenter launches the node itself, for pods that it sees
    "attempt",  # will be requested at the next launch attempt
    "node_pool",  # will be requested once the NodePool exists
    "refill",  # will be requested once nodes that Karpenter removes are gone; only in reports
    "schedule",  # will be requested when a schedule begins, and removed after the schedule ends; only in reports
    "limit",  # needed, but not requested because of a limit
]


class Purchase(msgspec.Struct, frozen=True, gc=False, order=True):
    """One node."""

    pool: str
    stage: Stage
    why: Why | None  # None: the machine is already being launched
    instance_type: str  # empty if unknown
    capacity_type: str
    gpus: int
    name: str = ""  # of the NodeClaim or smart pod
    at: Instant | None = None  # time of the request; None if unknown
    pods: int = 0  # number of pods that the node is for
    is_paid_for: bool = False  # the machine is already running
    limit: CapacityLimit | None = None  # the limit that prevents the purchase


class CapacityReport(msgspec.Struct, FeatureReport, frozen=True, tag=True):
    """Report of the smart pod feature."""

    purchases: tuple[Purchase, ...] = ()  # nodes that pools will get, by pool


# --- Shortage: an offering of a pool that yielded no machine; remembered for a while for all requests of the offering.


class Shortage(msgspec.Struct, frozen=True, gc=False, order=True):
    """An unavailable offering. Empty fields are wildcards."""

    pool: str
    instance_type: str
    capacity_type: str
    zone: str
    since: Instant
    until: Instant
    asked: str  # digest of the pool's offerings at that time; if the pool changes them, the offering is retried
    why: str  # the code of a reason


# --- Shortfall: how long a pool has lacked nodes for pods that Karpenter sees and could launch nodes for.


class PoolShortfall(msgspec.Struct, frozen=True, gc=False, order=True):
    """Removed as soon as the pool lacks nothing."""

    pool: str
    since: Instant
