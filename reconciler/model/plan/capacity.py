"""Capacity that a pool is to get or lacks: purchases, limits, shortages and shortfalls."""

from typing import Literal

import msgspec

from reconciler.model.instant import Instant

# --- What allows no more nodes of a pool.

LimitSource = Literal[
    "limits",  # of the GpuPool, on one resource
    "maxSize",  # of the NodeProvisioner
    "instanceTypes",  # the GpuPool declares none
]


class CapacityLimit(msgspec.Struct, frozen=True, gc=False, order=True):
    """As the policy has it."""

    source: LimitSource
    policy: str  # its name
    resource: str = ""  # of limits
    amount: str = ""  # nothing where no instance type is declared


# What the node is for.
Why = Literal["demand", "minSize", "warmNodes"]
# How far the purchase is, in the order in which nodes come.
Stage = Literal[
    "machine",  # a NodeClaim is there, its node is not
    "asked",  # a smart pod that is there asks for it
    "request",  # a smart pod that this plan makes asks for it
    "karpenter",  # Karpenter is left to buy it, for pods that it sees
    "attempt",  # asked for at the next attempt to buy
    "node_pool",  # asked for once the NodePool is there
    "refill",  # asked for once nodes that Karpenter removes are gone; told in reports alone
    "schedule",  # asked for when a schedule begins, and given back after that; told in reports alone
    "limit",  # wanted, and not asked for: a limit allows no more nodes
]


class Purchase(msgspec.Struct, frozen=True, gc=False, order=True):
    """One node."""

    pool: str
    stage: Stage
    why: Why | None  # None: a machine that is on its way
    instance_type: str  # nothing where that is not known
    capacity_type: str
    gpus: int
    name: str = ""  # of the NodeClaim, or of the smart pod
    at: Instant | None = None  # when it is asked for; None where that is not known
    pods: int = 0  # that it is for
    is_paid_for: bool = False  # the machine runs already
    limit: CapacityLimit | None = None  # what allows no more nodes


# --- A Shortage: a way to buy machines for a pool by which none came; remembered for a while, for all who would ask so.


class Shortage(msgspec.Struct, frozen=True, gc=False, order=True):
    """What is empty was left open."""

    pool: str
    instance_type: str
    capacity_type: str
    zone: str
    since: Instant
    until: Instant
    asked: str  # digest of what the pool said of its machines then: said otherwise, it is tried anew
    why: str  # the code of a reason


# --- Lacking: since when a pool lacks nodes for pods that Karpenter sees, and could buy.


class PoolShortfall(msgspec.Struct, frozen=True, gc=False, order=True):
    """Forgotten as soon as nothing is lacking."""

    pool: str
    since: Instant
