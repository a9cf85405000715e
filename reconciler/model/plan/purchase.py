"""A Purchase: a node that a pool is to get, and that is not there yet; or one that a limit keeps it from getting."""

from typing import Literal

import msgspec

from reconciler.model.instant import Instant
from reconciler.model.plan.capacity_limit import CapacityLimit

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
