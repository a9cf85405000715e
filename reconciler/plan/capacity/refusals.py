"""Why a pool can't buy nodes or serve a pod, and what waiting pods wait for."""

from enum import Enum
from typing import Literal

import msgspec

from reconciler.model.cluster.observed import Unread
from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant
from reconciler.model.plan.capacity import CapacityLimit
from reconciler.model.plan.decision import Obstacle, Ref
from reconciler.plan.capacity.offerings import LaunchOption
from reconciler.plan.guards.frozen import Freeze
from reconciler.plan.guards.observing import Observation


class PolicySuspended(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The GpuPool or the NodeProvisioner is suspended."""

    policy: Ref


class PoolFrozen(msgspec.Struct, frozen=True, gc=False, tag=True):
    """A person froze the pool by an annotation."""

    freeze: Freeze


class NodePoolAbsent(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Karpenter can't buy nodes, because the NodePool does not exist yet."""

    node_pool: Ref


class PoolObserved(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The pool is observed only: no action is carried out there."""

    observation: Observation


Bar = PolicySuspended | PoolFrozen | NodePoolAbsent | PoolObserved  # why a pool may not request nodes


class NoRoom(msgspec.Struct, frozen=True, gc=False, tag=True):
    """A limit allows no more nodes."""

    limit: CapacityLimit


class NoStock(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Every launch option failed recently, or no further attempt is allowed."""

    tried: tuple[LaunchOption, ...]


class NoFit(msgspec.Struct, frozen=True, gc=False, tag=True):
    """No new node of the pool could run the pod."""

    why: Obstacle  # from the scheduler's filters, or from bin packing
    is_packed: bool = False  # bin packing found the obstacle, beside other pods


class Unserved(Enum):
    """Reasons why a pool never serves a pod, or does not in this plan."""

    WITHOUT_GPUS = "withoutGpus"
    NO_INSTANCE_TYPE = "noInstanceType"
    NOT_EVALUATED = "notEvaluated"
    NOTHING_BOUGHT = "nothingBought"


class NotServed(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The pool does not serve the pod, for a reason without further data."""

    cause: Unserved


Why = NoRoom | NoStock | NoFit | NotServed | PolicySuspended


class PoolRefusal(msgspec.Struct, frozen=True, gc=False):
    """A pool that can't serve a pod, with the reason."""

    pool: str
    why: Why


class PoolRefusals(msgspec.Struct, frozen=True, gc=False):
    """All pools that can't serve a pod. Empty if no GpuPool is declared."""

    first: tuple[PoolRefusal, ...] = ()  # of the first few pools
    more: int = 0  # further pools that can't serve the pod


class ClaimState(Enum):
    """Why a GpuClaim can't be used."""

    ABSENT = "absent"
    SUSPENDED = "suspended"
    UNREADABLE = "unreadable"


class ClaimUnusable(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The GpuClaim is absent, suspended or unreadable."""

    state: ClaimState


class ClaimUnseen(msgspec.Struct, frozen=True, gc=False, tag=True):
    """GpuClaims could not be read."""

    unread: Unread


ClaimTrouble = ClaimUnusable | ClaimUnseen


# --- What each waiting pod waits for, as data.

WaitsFor = Literal[
    "scheduler",  # the scheduler: a node that stays has room
    "ready_node",  # a node that has room and is not ready
    "kept_node",  # a node whose removal is called off
    "smart_pod",  # a smart pod that requests a machine for the pod
    "machine",  # an in-flight machine
    "launch",  # a NodeClaim whose instance type is not known yet
    "karpenter",  # a node that Karpenter buys without a smart pod
    "request",  # a node that a smart pod will request
    "returned_node",  # a node whose drain is called off
    "retry",  # the next attempt to buy
    "pool",  # a pool that would serve the pod and may not request nodes
    "capacity",  # no pool can serve the pod
    "gang",  # its gang, which can't be served as a whole
    "gpu_pool",  # a pool that serves pods without GPUs
    "claim",  # its GpuClaim
    "other_gates",  # the removal of other scheduling gates
]


NAMELESS = Ref("", "", "")  # for objects that have no name yet, and for no object


class PodWait(msgspec.Struct, frozen=True, gc=False):
    """What one pod waits for."""

    pod: Pod
    waits_for: WaitsFor
    pool: str = ""
    awaited: Ref = NAMELESS  # the node, smart pod, machine or claim that the pod waits for
    gang: str = ""  # gang that can't be served as a whole
    bar: Bar | None = None  # why the pool may not request nodes
    trouble: ClaimTrouble | None = None  # problem of the pod's GpuClaim
    until: Instant | None = None
    refusals: PoolRefusals = PoolRefusals()  # why no pool can serve the pod
