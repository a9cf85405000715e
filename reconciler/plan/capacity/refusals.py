"""Why a pool cannot be asked for nodes or serve a pod, what waiting pods wait for, and nodes that are wanted."""

from enum import Enum
from typing import Literal

import msgspec

from reconciler.model.cluster.observed import Unread
from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant
from reconciler.model.plan.capacity import CapacityLimit
from reconciler.model.plan.decision import Obstacle, Ref
from reconciler.plan.capacity.offerings import LaunchOption, LaunchOptions
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


# --- What a pod without a place waits for, as data: one for each waiting pod that a plan decides about.

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


# --- A node that is wanted and that nobody has bought: in which way it is to be had, and whom it is for.


class WantedNode(msgspec.Struct, frozen=True):
    """One node."""

    choice: LaunchOption
    labels: dict[str, str]  # that it will have
    memory: str  # that pods may ask for there, as Kubernetes writes it
    pods: tuple[Pod, ...] = ()  # none where it is for minSize or warmNodes
    is_visible: bool = False  # Karpenter sees one of these pods, and buys of its own accord


class Unmet(msgspec.Struct, frozen=True):
    """Pods of one pool for which nothing is asked for now, because what was asked for did not come."""

    pool: str
    outlook: LaunchOptions
    pods: tuple[Pod, ...] = ()
    wanted: tuple[WantedNode, ...] = ()  # nodes for some of these pods: for the others it is not known which they need
    min_size: int = 0  # nodes that minSize lacks
    warm: int = 0  # nodes that warmNodes lacks


class Limited(msgspec.Struct, frozen=True):
    """Nodes of one pool that are wanted, and that are not asked for since a limit allows no more."""

    pool: str
    limit: CapacityLimit
    pods: tuple[Pod, ...] = ()
    warm: int = 0  # nodes that warmNodes lacks


class NodeWithRoom(msgspec.Struct, frozen=True, gc=False):
    """A node that stays, can be used, and has room for a pod."""

    node: str
    pool: str = ""  # by whose mode the pod is let go; nothing: of no pool


class CapacityAnswer(msgspec.Struct, frozen=True):
    """What there is for those who wait."""

    places: dict[str, NodeWithRoom] = {}  # of pods behind our gate, by uid
    schedulable: frozenset[str] = frozenset()  # uids of pods without a gate that find a place on nodes as they are
    unfit: frozenset[str] = frozenset()  # smart pods whose node has come, and takes none of those it was for
    used: frozenset[str] = frozenset()  # smart pods without a node yet that somebody waits for
    unmet: tuple[Unmet, ...] = ()
    limited: tuple[Limited, ...] = ()
    asked: dict[str, str] = {}  # uid of a pod -> the pool in which a machine is on its way for it by a smart pod
    waits: tuple[PodWait, ...] = ()  # what each pod without a place waits for
