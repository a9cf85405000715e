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
ASKED_LATE = Because(
    "SmartPodAsksToo",
    "insufficient GPUs in pool {pool} for {pods}, and Karpenter, which sees them, has bought nothing within {seconds} "
    "s: a smart pod asks for {choice}.",
)
KARPENTERS = Because(
    "KarpenterBuys", "{nodes} of pool {pool} are wanted for pods that Karpenter sees: it is left to buy them by itself."
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
CLEARED = Because("SmartPodCleared", "{pod} has failed and was told of: it is deleted.")
UNREADABLE = Because("SmartPodUnreadable", "{pod} has no request that can be read: it is deleted.")

OPENED = Because("NodeUsable", "{node} is ready and has its GPUs: gpu.scheduling/arriving comes off.")
LIFTED = Because("CapacityThere", "{node} has room for {pod}: its gate is lifted.")
TAKEN_AWAY = Because(
    "PlaceTakenAway",
    "{node} has room for {pod}, and is taken away in this plan: the gate stays until another node has room.",
)
OPENING = Because("NodeOpens", "{node} is being opened, and has room for {pod}: its gate is lifted once that is seen.")
GANG_WAITS = Because("GangWaits", "{node} has room for {pod}, and {missing} of its gang {gang} have no place yet.")
TRIGGERED = Because("ScalingTriggered", "insufficient GPUs in pool {pool}, scaling triggered.")
REFUSED = Because(
    "CapacityRefused",
    "insufficient GPUs in pool {pool}, and no machine can be had: tried {tried}. Tried again at {time}, or when the "
    "pool is changed.",
)
AGAIN = Because("CapacityRetried", "insufficient GPUs in pool {pool}: tried {tried}; the next way is tried at {time}.")

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
    ASKED_LATE,
    KARPENTERS,
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
    CLEARED,
    UNREADABLE,
    OPENED,
    LIFTED,
    OPENING,
    TAKEN_AWAY,
    GANG_WAITS,
    TRIGGERED,
    REFUSED,
    AGAIN,
)
