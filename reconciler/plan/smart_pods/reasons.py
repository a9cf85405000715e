"""Why a smart pod is made, kept or deleted, and what those who wait are told."""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from reconciler.model.cluster.observed import Unread
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import CodeFacts, Ref
from reconciler.plan.capacity.offerings import LaunchOption
from reconciler.plan.capacity.refusals import Bar, ClaimTrouble, PoolRefusals
from reconciler.plan.capacity.requests import MachinePhase

PLANNER = "smart_pods"


class Unbought(Enum):
    """Why there is no machine for a smart pod yet."""

    NO_CLAIM = "noClaim"
    UNSCHEDULED = "unscheduled"  # Karpenter buys for pods that the scheduler found no place for


class SmartPodAsks(CodeFacts, frozen=True):
    template = (
        "insufficient GPUs in pool {pool} for {pods:pod} that Karpenter does not see: a smart pod asks for {choice}."
    )

    pool: str
    pods: int
    choice: LaunchOption


class SmartPodAsksForLeast(CodeFacts, frozen=True):
    template = "pool {pool} has fewer nodes than minSize: a smart pod asks for {choice}."

    pool: str
    choice: LaunchOption


class SmartPodAsksForWarmNode(CodeFacts, frozen=True):
    template = "pool {pool} has fewer free nodes than warmNodes: a smart pod asks for {choice}."

    pool: str
    choice: LaunchOption


class SmartPodAsksToo(CodeFacts, frozen=True):
    template = (
        "insufficient GPUs in pool {pool} for {pods:pod}, and Karpenter, which sees them, has bought nothing within "
        "{seconds} s: a smart pod asks for {choice}."
    )

    pool: str
    pods: int
    seconds: int
    choice: LaunchOption


class KarpenterBuys(CodeFacts, frozen=True):
    template = "pool {pool} lacks {nodes:node} for pods that Karpenter sees: Karpenter is left to buy by itself."

    pool: str
    nodes: int


class KarpenterRetries(CodeFacts, frozen=True):
    template = (
        "pool {pool} lacks {nodes:node} for pods that Karpenter sees, and smart pods got no machine lately: until "
        "they ask again only Karpenter tries."
    )

    pool: str
    nodes: int


class DrainedNodesReturn(CodeFacts, frozen=True):
    template = (
        "pool {pool} lacks {nodes:node}, and a drain gives back {returned:node} in this plan: none is bought in their "
        "stead."
    )

    pool: str
    nodes: int
    returned: int


class SmartPodMachineBought(CodeFacts, frozen=True):
    template = "Karpenter bought {claim} for {pod}: it is {phase}."

    pod: Ref
    claim: Ref
    phase: MachinePhase


class SmartPodMachineLost(CodeFacts, frozen=True):
    template = "{claim} of {pod} is gone before its node was ready: no stock, or it was deleted."

    pod: Ref
    claim: Ref


class SmartPodScheduled(CodeFacts, frozen=True):
    template = "{pod} is bound to {node}, which can't be used yet."

    pod: Ref
    node: Ref


class SmartPodWaits(CodeFacts, frozen=True):
    template = "{pod} waits for {choice}: {machine}."

    pod: Ref
    choice: LaunchOption
    machine: Unbought


class SmartPodDone(CodeFacts, frozen=True):
    template = "{node} can be used: {pod} is deleted, its work done. NodeClaim and node stay."

    pod: Ref
    node: Ref


class SmartPodWithoutMachine(CodeFacts, frozen=True):
    template = "no machine came for {pod} within {seconds} s ({choice}): the next way is tried."

    pod: Ref
    seconds: int
    choice: LaunchOption


class SmartPodTimedOut(CodeFacts, frozen=True):
    template = "{pod} has had its {seconds} s ({choice}): it is deleted."

    pod: Ref
    seconds: int
    choice: LaunchOption


class SmartPodOrphaned(CodeFacts, frozen=True):
    template = "nobody waits for {pod} any more: it is deleted."

    pod: Ref


class SmartPodDuplicate(CodeFacts, frozen=True):
    template = "{pod} asks for the same as {other}: it is deleted."

    pod: Ref
    other: Ref


class SmartPodFailed(CodeFacts, frozen=True):
    template = "no machine came for {pod}, and every way to buy was tried ({tried}): nothing more is asked for."

    pod: Ref
    tried: tuple[LaunchOption, ...]


class SmartPodAttemptsSpent(CodeFacts, frozen=True):
    template = (
        "no machine came for {pod}: {attempts:attempt} failed ({tried}), and smartPods.maxRetryAttempts {most} allows "
        "no more."
    )

    pod: Ref
    attempts: int
    tried: tuple[LaunchOption, ...]
    most: int


class SmartPodCleared(CodeFacts, frozen=True):
    template = "{pod} has failed and was told of: it is deleted."

    pod: Ref


class SmartPodUnreadable(CodeFacts, frozen=True):
    template = "{pod} has no request that can be read and that gives it this name, pool and namespace: it is deleted."

    pod: Ref


class NodeUsable(CodeFacts, frozen=True):
    template = "{node} is ready and has its GPUs: gpu.scheduling/arriving comes off."

    node: Ref


class CapacityThere(CodeFacts, frozen=True):
    template = "{node} has room for {pod}: its gate is lifted."

    pod: Ref
    node: Ref


class PlaceTakenAway(CodeFacts, frozen=True):
    template = "{node} has room for {pod}, and is taken away in this plan: the gate stays until another node has room."

    pod: Ref
    node: Ref


class NodeOpens(CodeFacts, frozen=True):
    template = "{node} is being opened, and has room for {pod}: its gate is lifted once that is seen."

    pod: Ref
    node: Ref


class GangWaits(CodeFacts, frozen=True):
    template = "{node} has room for {pod}, and {missing:pod} of its gang {gang} can't start yet."

    pod: Ref
    node: Ref
    missing: int
    gang: str


class ScalingTriggered(CodeFacts, frozen=True):
    template = "insufficient GPUs in pool {pool}, scaling triggered."

    pool: str


class CapacityRefused(CodeFacts, frozen=True):
    template = (
        "insufficient GPUs in pool {pool}, and no machine can be had: tried {tried}. Tried again at {time:time}, or "
        "when the pool is changed."
    )

    pool: str
    tried: tuple[LaunchOption, ...]
    time: Instant | None


class CapacityAttemptsSpent(CodeFacts, frozen=True):
    template = (
        "insufficient GPUs in pool {pool}, and smartPods.maxRetryAttempts {most} allows no more attempts: tried "
        "{tried}. Tried again at {time:time}, or when the pool is changed."
    )

    pool: str
    most: int
    tried: tuple[LaunchOption, ...]
    time: Instant | None


class CapacityRetried(CodeFacts, frozen=True):
    template = "insufficient GPUs in pool {pool}: tried {tried}; the next way is tried at {time:time}."

    pool: str
    tried: tuple[LaunchOption, ...]
    time: Instant


# What a pod without a place waits for.


class SchedulerPlacesPod(CodeFacts, frozen=True):
    template = "{node} has room for {pod}: the scheduler is left to place the pod."

    pod: Ref
    node: Ref


class PodAwaitsReadyNode(CodeFacts, frozen=True):
    template = "{pod} waits for {node}, which has room for the pod and is not ready."

    pod: Ref
    node: Ref


class NodeKeptForPod(CodeFacts, frozen=True):
    template = "{node} was to be removed, and is kept for {pod}."

    pod: Ref
    node: Ref


class PodAwaitsSmartPod(CodeFacts, frozen=True):
    template = "{pod} waits for the node that {smart} asks for in pool {pool}."

    pod: Ref
    pool: str
    smart: Ref


class PodAwaitsMachine(CodeFacts, frozen=True):
    template = "{pod} waits for {machine} of NodePool {pool}, which is on its way."

    pod: Ref
    pool: str
    machine: Ref


class PodAwaitsLaunch(CodeFacts, frozen=True):
    template = "{pod} waits for a machine that Karpenter launches in pool {pool}."

    pod: Ref
    pool: str


class PodAwaitsKarpenter(CodeFacts, frozen=True):
    template = (
        "{pod} waits for a node of pool {pool}: Karpenter is left to buy the node, and a smart pod asks for it if "
        "Karpenter buys none."
    )

    pod: Ref
    pool: str


class PodAwaitsNode(CodeFacts, frozen=True):
    template = "{pod} waits for a node of pool {pool}, which a smart pod asks for."

    pod: Ref
    pool: str


class PodAwaitsReturnedNode(CodeFacts, frozen=True):
    template = "{pod} waits for a node of pool {pool} that a drain gives back in this plan."

    pod: Ref
    pool: str


class PodAwaitsAttempt(CodeFacts, frozen=True):
    template = "{pod} waits for the next attempt to buy in pool {pool}, at {time:time}."

    pod: Ref
    pool: str
    time: Instant | None


class PodAwaitsPool(CodeFacts, frozen=True):
    template = "{pod} waits: only pool {pool} would serve the pod, and {why}."

    pod: Ref
    pool: str
    why: Bar


class PodUnserved(CodeFacts, frozen=True):
    template = "no pool can serve {pod} now: {why}."

    pod: Ref
    why: PoolRefusals


class GangUnserved(CodeFacts, frozen=True):
    template = "{pod} waits: nothing is bought for gang {gang}, since no pool can serve all of it."

    pod: Ref
    gang: str


class PodWithoutGpus(CodeFacts, frozen=True):
    template = "{pod} asks for no GPU: no GPU node is bought or kept for the pod, which Karpenter sees."

    pod: Ref


class GatedPodWithoutGpus(CodeFacts, frozen=True):
    template = (
        "{pod} asks for no GPU, and no pool serves such pods: the pod waits for room on a node that is there. Take "
        "its gate gpu.scheduling/capacity off, or set servesPodsWithoutGpus."
    )

    pod: Ref


class PodAwaitsClaim(CodeFacts, frozen=True):
    template = "{pod} waits for {claim}: {why}."

    pod: Ref
    claim: Ref
    why: ClaimTrouble


class PodAwaitsOtherGates(CodeFacts, frozen=True):
    template = "{pod} waits for whoever lifts its other gates ({gates})."

    pod: Ref
    gates: tuple[str, ...]


class SmartPodsUnread(CodeFacts, frozen=True):
    template = "{why}: what is asked of Karpenter is not known, and nothing more is asked for."

    why: Unread


class NodePoolAwaited(CodeFacts, frozen=True):
    template = (
        "{nodes:node} of pool {pool} are wanted, and its NodePool is not there: nothing is asked for before it is."
    )

    pool: str
    nodes: int


# Of pods that are being served: nothing that was asked for is held.
RESTING: frozenset[type[CodeFacts]] = frozenset(
    {
        SchedulerPlacesPod,
        PodAwaitsReadyNode,
        NodeKeptForPod,
        PodAwaitsSmartPod,
        PodAwaitsMachine,
        PodAwaitsLaunch,
        PodAwaitsKarpenter,
        PodAwaitsNode,
        PodAwaitsReturnedNode,
        PodWithoutGpus,
    }
)


# --- What is said of smart pods. Reasons hold these as data.

_UNBOUGHT = {
    Unbought.NO_CLAIM: "no NodeClaim yet",
    Unbought.UNSCHEDULED: "the scheduler has not looked at it yet",
}

WORDS: Mapping[type, Callable[[Any], str]] = {Unbought: _UNBOUGHT.__getitem__}
