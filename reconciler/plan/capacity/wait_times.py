"""What a pod without a place waits for, as data: one for each waiting pod that a plan decides about."""

from typing import Literal

import msgspec

from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant
from reconciler.model.plan.action import Ref
from reconciler.plan.capacity.refusals import Bar, ClaimTrouble, PoolRefusals

WaitsFor = Literal[
    "scheduler",  # a node that stays has room
    "ready_node",  # a node that has room and is not ready
    "kept_node",  # a node that was to be removed is kept
    "smart_pod",  # a smart pod asks for its machine
    "machine",  # a machine that is on its way
    "launch",  # a NodeClaim of which the cloud has not said what it is
    "karpenter",  # a node that Karpenter is left to buy
    "request",  # a node that a smart pod is to ask for
    "returned_node",  # a node that a drain gives back
    "retry",  # the next attempt to buy
    "pool",  # a pool that would serve it, and that may not be asked
    "capacity",  # no pool can serve it
    "gang",  # nothing is bought for a gang that can't be served as a whole
    "gpu_pool",  # it asks for no GPU, and no pool serves such pods
    "claim",  # its GpuClaim
    "other_gates",  # whoever put further gates on it
]


NAMELESS = Ref("", "", "")  # what has no name yet, and what is no object


class PodWait(msgspec.Struct, frozen=True, gc=False):
    """One pod."""

    pod: Pod
    waits_for: WaitsFor
    pool: str = ""
    awaited: Ref = NAMELESS  # the node, smart pod, machine or claim that it waits for
    gang: str = ""  # that can't be served as a whole
    bar: Bar | None = None  # why the pool may not be asked
    trouble: ClaimTrouble | None = None  # of its claim
    until: Instant | None = None
    refusals: PoolRefusals = PoolRefusals()  # why no pool can serve it
