"""Why a smart pod is made, kept or deleted, and what those who wait are told."""

from reconciler.plan.reasons import Because

PLANNER = "smart_pods"

ASKED = Because(
    "SmartPodAsks",
    "insufficient GPUs in pool {pool} for {pods} that Karpenter does not see: a smart pod asks for {choice}.",
)
ASKED_LEAST = Because(
    "SmartPodAsksForLeast", "pool {pool} has fewer nodes than minSize: a smart pod asks for {choice}."
)
ASKED_WARM = Because(
    "SmartPodAsksForWarmNode",
    "pool {pool} has fewer free nodes than warmNodes: a smart pod asks for {choice}.",
)
ASKED_LATE = Because(
    "SmartPodAsksToo",
    "insufficient GPUs in pool {pool} for {pods}, and Karpenter, which sees them, has bought nothing within {seconds} "
    "s: a smart pod asks for {choice}.",
)
KARPENTERS = Because(
    "KarpenterBuys", "pool {pool} lacks {nodes} for pods that Karpenter sees: Karpenter is left to buy by itself."
)
KARPENTER_RETRIES = Because(
    "KarpenterRetries",
    "pool {pool} lacks {nodes} for pods that Karpenter sees, and smart pods got no machine lately: until they ask "
    "again only Karpenter tries.",
)
GIVEN_BACK = Because(
    "DrainedNodesReturn",
    "pool {pool} lacks {nodes}, and a drain gives back {returned} in this plan: none is bought in their stead.",
)
BOUGHT = Because("SmartPodMachineBought", "Karpenter bought NodeClaim/{claim} for {pod}: it is {phase}.")
LOST = Because(
    "SmartPodMachineLost", "NodeClaim/{claim} of {pod} is gone before its node was ready: no stock, or it was deleted."
)
BOUND = Because("SmartPodScheduled", "{pod} is bound to {node}, which can't be used yet.")
WAITS_FOR_MACHINE = Because("SmartPodWaits", "{pod} waits for {choice}: {machine}.")

DONE = Because("SmartPodDone", "{node} can be used: {pod} is deleted, its work done. NodeClaim and node stay.")
WITHOUT_MACHINE = Because(
    "SmartPodWithoutMachine", "no machine came for {pod} within {seconds} s ({choice}): the next way is tried."
)
TIMED_OUT = Because("SmartPodTimedOut", "{pod} has had its {seconds} s ({choice}): it is deleted.")
ORPHANED = Because("SmartPodOrphaned", "nobody waits for {pod} any more: it is deleted.")
DUPLICATE = Because("SmartPodDuplicate", "{pod} asks for the same as {other}: it is deleted.")
FAILED = Because(
    "SmartPodFailed", "no machine came for {pod}, and every way to buy was tried ({tried}): nothing more is asked for."
)
LIMITED = Because(
    "SmartPodAttemptsSpent",
    "no machine came for {pod}: {attempts} failed ({tried}), and smartPods.maxRetryAttempts {most} allows no more.",
)
CLEARED = Because("SmartPodCleared", "{pod} has failed and was told of: it is deleted.")
UNREADABLE = Because(
    "SmartPodUnreadable",
    "{pod} has no request that can be read and that gives it this name, pool and namespace: it is deleted.",
)

OPENED = Because("NodeUsable", "{node} is ready and has its GPUs: gpu.scheduling/arriving comes off.")
LIFTED = Because("CapacityThere", "{node} has room for {pod}: its gate is lifted.")
TAKEN_AWAY = Because(
    "PlaceTakenAway",
    "{node} has room for {pod}, and is taken away in this plan: the gate stays until another node has room.",
)
OPENING = Because("NodeOpens", "{node} is being opened, and has room for {pod}: its gate is lifted once that is seen.")
GANG_WAITS = Because("GangWaits", "{node} has room for {pod}, and {missing} of its gang {gang} can't start yet.")
TRIGGERED = Because("ScalingTriggered", "insufficient GPUs in pool {pool}, scaling triggered.")
REFUSED = Because(
    "CapacityRefused",
    "insufficient GPUs in pool {pool}, and no machine can be had: tried {tried}. Tried again at {time}, or when the "
    "pool is changed.",
)
REFUSED_BY_LIMIT = Because(
    "CapacityAttemptsSpent",
    "insufficient GPUs in pool {pool}, and smartPods.maxRetryAttempts {most} allows no more attempts: tried {tried}. "
    "Tried again at {time}, or when the pool is changed.",
)
AGAIN = Because("CapacityRetried", "insufficient GPUs in pool {pool}: tried {tried}; the next way is tried at {time}.")

# What a pod without a place waits for.
SCHEDULER_PLACES = Because("SchedulerPlacesPod", "{node} has room for {pod}: the scheduler is left to place the pod.")
NODE_AWAITED = Because("PodAwaitsReadyNode", "{pod} waits for {node}, which has room for the pod and is not ready.")
NODE_KEPT_FOR = Because("NodeKeptForPod", "{node} was to be removed, and is kept for {pod}.")
MACHINE_ASKED_FOR = Because("PodAwaitsSmartPod", "{pod} waits for the node that {smart} asks for in pool {pool}.")
MACHINE_COMES = Because("PodAwaitsMachine", "{pod} waits for {machine} of NodePool {pool}, which is on its way.")
MACHINE_LAUNCHES = Because("PodAwaitsLaunch", "{pod} waits for a machine that Karpenter launches in pool {pool}.")
LEFT_TO_KARPENTER = Because(
    "PodAwaitsKarpenter",
    "{pod} waits for a node of pool {pool}: Karpenter is left to buy the node, and a smart pod asks for it if "
    "Karpenter buys none.",
)
NODE_ASKED_FOR = Because("PodAwaitsNode", "{pod} waits for a node of pool {pool}, which a smart pod asks for.")
NODE_RETURNS = Because(
    "PodAwaitsReturnedNode", "{pod} waits for a node of pool {pool} that a drain gives back in this plan."
)
NEXT_ATTEMPT = Because("PodAwaitsAttempt", "{pod} waits for the next attempt to buy in pool {pool}, at {time}.")
POOL_BARRED = Because("PodAwaitsPool", "{pod} waits: only pool {pool} would serve the pod, and {why}.")
NO_CAPACITY = Because("PodUnserved", "no pool can serve {pod} now: {why}.")
GANG_UNSERVED = Because(
    "GangUnserved", "{pod} waits: nothing is bought for gang {gang}, since no pool can serve all of it."
)
WITHOUT_GPUS = Because(
    "PodWithoutGpus", "{pod} asks for no GPU: no GPU node is bought or kept for the pod, which Karpenter sees."
)
WITHOUT_GPUS_GATED = Because(
    "GatedPodWithoutGpus",
    "{pod} asks for no GPU, and no pool serves such pods: the pod waits for room on a node that is there. Take its "
    "gate gpu.scheduling/capacity off, or set servesPodsWithoutGpus.",
)
CLAIM_AWAITED = Because("PodAwaitsClaim", "{pod} waits for {claim}: {why}.")
OTHER_GATES = Because("PodAwaitsOtherGates", "{pod} waits for whoever lifts its other gates ({gates}).")

UNREAD = Because("SmartPodsUnread", "{why}: what is asked of Karpenter is not known, and nothing more is asked for.")
NO_NODE_POOL = Because(
    "NodePoolAwaited",
    "{nodes} of pool {pool} are wanted, and its NodePool is not there: nothing is asked for before it is.",
)

REASONS = (
    UNREAD,
    NO_NODE_POOL,
    ASKED,
    ASKED_LEAST,
    ASKED_WARM,
    ASKED_LATE,
    KARPENTERS,
    KARPENTER_RETRIES,
    GIVEN_BACK,
    BOUGHT,
    LOST,
    BOUND,
    WAITS_FOR_MACHINE,
    DONE,
    WITHOUT_MACHINE,
    TIMED_OUT,
    ORPHANED,
    DUPLICATE,
    FAILED,
    LIMITED,
    CLEARED,
    UNREADABLE,
    OPENED,
    LIFTED,
    OPENING,
    TAKEN_AWAY,
    GANG_WAITS,
    TRIGGERED,
    REFUSED,
    REFUSED_BY_LIMIT,
    AGAIN,
    SCHEDULER_PLACES,
    NODE_AWAITED,
    NODE_KEPT_FOR,
    MACHINE_ASKED_FOR,
    MACHINE_COMES,
    MACHINE_LAUNCHES,
    LEFT_TO_KARPENTER,
    NODE_ASKED_FOR,
    NODE_RETURNS,
    NEXT_ATTEMPT,
    POOL_BARRED,
    NO_CAPACITY,
    GANG_UNSERVED,
    WITHOUT_GPUS,
    WITHOUT_GPUS_GATED,
    CLAIM_AWAITED,
    OTHER_GATES,
)

# Of pods that are being served: nothing that was asked for is held.
RESTING = frozenset(
    each.code
    for each in (
        SCHEDULER_PLACES,
        NODE_AWAITED,
        NODE_KEPT_FOR,
        MACHINE_ASKED_FOR,
        MACHINE_COMES,
        MACHINE_LAUNCHES,
        LEFT_TO_KARPENTER,
        NODE_ASKED_FOR,
        NODE_RETURNS,
        WITHOUT_GPUS,
    )
)
