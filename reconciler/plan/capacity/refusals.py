"""Why a pool may not be asked for nodes, why it can't serve a pod, and what is wrong with the GpuClaim of a pod."""

from enum import Enum

import msgspec

from reconciler.model.cluster.observed import Unread
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan.action import Ref
from reconciler.model.plan.capacity_limit import CapacityLimit
from reconciler.plan.capacity.offerings import LaunchOption
from reconciler.plan.guards.frozen import Freeze
from reconciler.plan.guards.observing import Observation


class PolicySuspended(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The GpuPool or the NodeProvisioner is suspended."""

    policy: Ref


class PoolFrozen(msgspec.Struct, frozen=True, gc=False, tag=True):
    """By an annotation that a person wrote."""

    freeze: Freeze


class NodePoolAbsent(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Karpenter could buy nothing yet."""

    node_pool: Ref


class PoolObserved(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Nothing is carried out in the pool."""

    observation: Observation


Bar = PolicySuspended | PoolFrozen | NodePoolAbsent | PoolObserved  # why a pool may not be asked


class NoRoom(msgspec.Struct, frozen=True, gc=False, tag=True):
    """A limit allows no more nodes."""

    limit: CapacityLimit


class NoStock(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Every way to buy failed lately, or no further attempt is allowed."""

    tried: tuple[LaunchOption, ...]


class NoFit(msgspec.Struct, frozen=True, gc=False, tag=True):
    """No new node of the pool could hold the pod."""

    why: Obstacle  # of the scheduler's filters, or of packing
    is_packed: bool = False  # packing found it, beside other pods


class Unserved(Enum):
    """A pool that serves a pod in no case, or not in this plan."""

    WITHOUT_GPUS = "withoutGpus"
    NO_INSTANCE_TYPE = "noInstanceType"
    NOT_EVALUATED = "notEvaluated"
    NOTHING_BOUGHT = "nothingBought"


class NotServed(msgspec.Struct, frozen=True, gc=False, tag=True):
    """For a reason without further data."""

    cause: Unserved


Why = NoRoom | NoStock | NoFit | NotServed | PolicySuspended


class PoolRefusal(msgspec.Struct, frozen=True, gc=False):
    """One pool that can't serve a pod."""

    pool: str
    why: Why


class PoolRefusals(msgspec.Struct, frozen=True, gc=False):
    """All pools that can't serve a pod; of none, no GpuPool is declared."""

    first: tuple[PoolRefusal, ...] = ()  # of the first few pools
    more: int = 0  # pools that can't serve it either


class ClaimState(Enum):
    """What is wrong with a GpuClaim."""

    ABSENT = "absent"
    SUSPENDED = "suspended"
    UNREADABLE = "unreadable"


class ClaimUnusable(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The GpuClaim says that nothing is to be had for it, or can't be understood."""

    state: ClaimState


class ClaimUnseen(msgspec.Struct, frozen=True, gc=False, tag=True):
    """GpuClaims could not be read."""

    unread: Unread


ClaimTrouble = ClaimUnusable | ClaimUnseen
