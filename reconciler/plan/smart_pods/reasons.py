"""Reasons of smart pods: why a smart pod is created, kept or deleted, and what waiting pods wait for."""

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
    """Why a smart pod has no machine yet."""

    NO_CLAIM = "noClaim"
    UNSCHEDULED = "unscheduled"  # Karpenter buys for pods that the scheduler found no place for


class SmartPodAsks(CodeFacts, frozen=True):
    template = (
        "insufficient GPUs in pool {pool} for {pods:pod} that Karpenter does not see: a smart pod requests {choice}."
    )

    pool: str
    pods: int
    choice: LaunchOption


class SmartPodAsksForLeast(CodeFacts, frozen=True):
    template = "pool {pool} has fewer nodes than minSize: a smart pod requests {choice}."

    pool: str
    choice: LaunchOption


class SmartPodAsksForWarmNode(CodeFacts, frozen=True):
    template = "pool {pool} has fewer free nodes than warmNodes: a smart pod requests {choice}."

    pool: str
    choice: LaunchOption


class SmartPodAsksToo(CodeFacts, frozen=True):
    template = (
        "insufficient GPUs in pool {pool} for {pods:pod} that Karpenter sees, and Karpenter has bought nothing within "
        "{seconds} s: a smart pod requests {choice}."
    )

    pool: str
    pods: int
    seconds: int
    choice: LaunchOption


class KarpenterBuys(CodeFacts, frozen=True):
    template = (
        "pool {pool} lacks {nodes:node} for pods that Karpenter sees: no smart pod is created yet, so that Karpenter "
        "can buy the nodes."
    )

    pool: str
    nodes: int


class KarpenterRetries(CodeFacts, frozen=True):
    template = (
        "pool {pool} lacks {nodes:node} for pods that Karpenter sees, and recent smart pods got no machine: only "
        "Karpenter tries to buy nodes until the next attempt of a smart pod."
    )

    pool: str
    nodes: int


class DrainedNodesReturn(CodeFacts, frozen=True):
    template = (
        "pool {pool} lacks {nodes:node}, and this plan cancels the drain of {returned:node}: these nodes replace the "
        "missing nodes, and no node is bought."
    )

    pool: str
    nodes: int
    returned: int


class SmartPodMachineBought(CodeFacts, frozen=True):
    template = "Karpenter created {claim} for {pod}: the machine is {phase}."

    pod: Ref
    claim: Ref
    phase: MachinePhase


class SmartPodMachineLost(CodeFacts, frozen=True):
    template = (
        "{claim} of {pod} was deleted before its node was ready, for example because the launch found no capacity."
    )

    pod: Ref
    claim: Ref


class SmartPodScheduled(CodeFacts, frozen=True):
    template = "{pod} is bound to {node}, which is not usable yet."

    pod: Ref
    node: Ref


class SmartPodWaits(CodeFacts, frozen=True):
    template = "{pod} waits for {choice}: {machine}."

    pod: Ref
    choice: LaunchOption
    machine: Unbought


class SmartPodDone(CodeFacts, frozen=True):
    template = "{node} is usable: {pod} is no longer needed and is deleted. The NodeClaim and the node stay."

    pod: Ref
    node: Ref


class SmartPodWithoutMachine(CodeFacts, frozen=True):
    template = "no machine came for {pod} within {seconds} s ({choice}): the next launch option is tried."

    pod: Ref
    seconds: int
    choice: LaunchOption


class SmartPodTimedOut(CodeFacts, frozen=True):
    template = "{pod} exceeded its deadline of {seconds} s ({choice}): the smart pod is deleted."

    pod: Ref
    seconds: int
    choice: LaunchOption


class SmartPodOrphaned(CodeFacts, frozen=True):
    template = "no pod waits for {pod} any more: the smart pod is deleted."

    pod: Ref


class SmartPodDuplicate(CodeFacts, frozen=True):
    template = "{pod} has the same request as {other}: {pod} is deleted."

    pod: Ref
    other: Ref


class SmartPodFailed(CodeFacts, frozen=True):
    template = (
        "no machine came for {pod}, and all launch options were tried ({tried}): no further machine is requested."
    )

    pod: Ref
    tried: tuple[LaunchOption, ...]


class SmartPodAttemptsSpent(CodeFacts, frozen=True):
    template = (
        "no machine came for {pod}: {attempts:attempt} failed ({tried}), and smartPods.maxRetryAttempts {most} allows "
        "no more attempts."
    )

    pod: Ref
    attempts: int
    tried: tuple[LaunchOption, ...]
    most: int


class SmartPodCleared(CodeFacts, frozen=True):
    template = "{pod} has failed, and the failure was reported: the smart pod is deleted."

    pod: Ref


class SmartPodUnreadable(CodeFacts, frozen=True):
    template = "{pod} has no readable request that matches its name, pool and namespace: the pod is deleted."

    pod: Ref


class NodeUsable(CodeFacts, frozen=True):
    template = "{node} is ready and has its GPUs: the taint gpu.scheduling/arriving is removed."

    node: Ref


class CapacityThere(CodeFacts, frozen=True):
    template = "{node} has room for {pod}: the gate of the pod is removed."

    pod: Ref
    node: Ref


class PlaceTakenAway(CodeFacts, frozen=True):
    template = (
        "{node} has room for {pod}, but this plan removes {node}: the gate of the pod stays until another node has "
        "room."
    )

    pod: Ref
    node: Ref


class NodeOpens(CodeFacts, frozen=True):
    template = (
        "{node} has room for {pod}, and this plan removes the taint gpu.scheduling/arriving of {node}: the gate of "
        "the pod is removed when the taint is gone."
    )

    pod: Ref
    node: Ref


class GangWaits(CodeFacts, frozen=True):
    template = "{node} has room for {pod}, but {missing:pod} of its gang {gang} can't start yet."

    pod: Ref
    node: Ref
    missing: int
    gang: str


class ScalingTriggered(CodeFacts, frozen=True):
    template = "insufficient GPUs in pool {pool}, scaling triggered."

    pool: str


class CapacityRefused(CodeFacts, frozen=True):
    template = (
        "insufficient GPUs in pool {pool}, and no machine is available: tried {tried}. The next attempt is at "
        "{time:time}, or when the pool is changed."
    )

    pool: str
    tried: tuple[LaunchOption, ...]
    time: Instant | None


class CapacityAttemptsSpent(CodeFacts, frozen=True):
    template = (
        "insufficient GPUs in pool {pool}, and smartPods.maxRetryAttempts {most} allows no more attempts: tried "
        "{tried}. The next attempt is at {time:time}, or when the pool is changed."
    )

    pool: str
    most: int
    tried: tuple[LaunchOption, ...]
    time: Instant | None


class CapacityRetried(CodeFacts, frozen=True):
    template = "insufficient GPUs in pool {pool}: tried {tried}; the next launch option is tried at {time:time}."

    pool: str
    tried: tuple[LaunchOption, ...]
    time: Instant


# Reasons of waiting pods.


class SchedulerPlacesPod(CodeFacts, frozen=True):
    template = "{node} has room for {pod}: the pod waits for the scheduler."

    pod: Ref
    node: Ref


class PodAwaitsReadyNode(CodeFacts, frozen=True):
    template = "{pod} waits for {node}, which has room for the pod but is not ready."

    pod: Ref
    node: Ref


class NodeKeptForPod(CodeFacts, frozen=True):
    template = "{node} was marked for deletion, and is kept for {pod}."

    pod: Ref
    node: Ref


class PodAwaitsSmartPod(CodeFacts, frozen=True):
    template = "{pod} waits for the node that {smart} requests in pool {pool}."

    pod: Ref
    pool: str
    smart: Ref


class PodAwaitsMachine(CodeFacts, frozen=True):
    template = "{pod} waits for {machine} of NodePool {pool}, whose node is not ready yet."

    pod: Ref
    pool: str
    machine: Ref


class PodAwaitsLaunch(CodeFacts, frozen=True):
    template = "{pod} waits for a machine that Karpenter launches in pool {pool}."

    pod: Ref
    pool: str


class PodAwaitsKarpenter(CodeFacts, frozen=True):
    template = (
        "{pod} waits for a node of pool {pool}: Karpenter can buy the node first, and a smart pod requests the node "
        "if Karpenter buys none."
    )

    pod: Ref
    pool: str


class PodAwaitsNode(CodeFacts, frozen=True):
    template = "{pod} waits for a node of pool {pool}, which a smart pod requests."

    pod: Ref
    pool: str


class PodAwaitsReturnedNode(CodeFacts, frozen=True):
    template = "{pod} waits for a node of pool {pool} whose drain this plan cancels."

    pod: Ref
    pool: str


class PodAwaitsAttempt(CodeFacts, frozen=True):
    template = "{pod} waits for the next attempt to buy a node in pool {pool}, at {time:time}."

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
    template = "{pod} waits: no node is bought for gang {gang}, because no pool can serve the whole gang."

    pod: Ref
    gang: str


class PodWithoutGpus(CodeFacts, frozen=True):
    template = "{pod} requests no GPU: no GPU node is bought or kept for the pod. Karpenter can buy a node for it."

    pod: Ref


class GatedPodWithoutGpus(CodeFacts, frozen=True):
    template = (
        "{pod} requests no GPU, and no pool serves such pods: the pod waits for room on an existing node. Remove "
        "its gate gpu.scheduling/capacity, or set servesPodsWithoutGpus."
    )

    pod: Ref


class PodAwaitsClaim(CodeFacts, frozen=True):
    template = "{pod} waits for {claim}: {why}."

    pod: Ref
    claim: Ref
    why: ClaimTrouble


class PodAwaitsOtherGates(CodeFacts, frozen=True):
    template = "{pod} waits until its other gates ({gates}) are removed."

    pod: Ref
    gates: tuple[str, ...]


class SmartPodsUnread(CodeFacts, frozen=True):
    template = "the current requests to Karpenter are unknown ({why}), so no further node is requested."

    why: Unread


class NodePoolAwaited(CodeFacts, frozen=True):
    template = (
        "pool {pool} lacks {nodes:node}, and its NodePool does not exist: no node is requested until the NodePool "
        "exists."
    )

    pool: str
    nodes: int


# Reasons of pods that are being served: no request is held back.
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


# --- Text for facts of smart pods. Reasons hold these facts as data.

_UNBOUGHT = {
    Unbought.NO_CLAIM: "no NodeClaim yet",
    Unbought.UNSCHEDULED: "the scheduler has not evaluated the pod yet",
}

WORDS: Mapping[type, Callable[[Any], str]] = {Unbought: _UNBOUGHT.__getitem__}
