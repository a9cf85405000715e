"""Why a node is a candidate for a drain, or is not; why it is emptied, given back or deleted; and what keeps a pod."""

from reconciler.plan.reasons import Because

PLANNER = "drain"

# Why a node is no candidate, looked at in the order of candidates.py.
FROZEN_NODE = Because("FrozenNode", "{what} is frozen {until}: {node} is no candidate.")
BEING_DRAINED = Because("BeingDrained", "{node} is being drained already, since {since}.")
SCALED_DOWN = Because("ScaledDown", "{node} is taken away by scaling, which owns it until then.")
OTHERS_TURN = Because("OthersTurn", "{planner} acts on {node} in this plan: it is looked at again in the next.")
JUST_CAME = Because("NodeSettles", "{node} has just come, and settles until {time}: its pods are on their way.")
SET_BACK = Because(
    "DrainFailedLately",
    "{node} was given back at {at} ({code}), for the {times}. time: it is left alone until {until}.",
)
LOST = Because(
    "NodeLost",
    "{node} is not ready, its kubelet has stopped to report, and nobody ends its machine: the node is not Karpenter's. "
    "End the machine and delete the Node.",
    by_person=True,
)
LOST_WITH_POD = Because(
    "NodeLostWithPod",
    "{node} is not ready, {pod} stays Terminating there, and nobody ends its machine: the node is not Karpenter's. End "
    "the machine and delete the Node.",
    by_person=True,
)
LEAVES_SLOWLY = Because(
    "PodLeavesSlowly",
    "{pod} is being deleted and was to be gone by {time}, within the {seconds} s that {policy} allows at most; it is "
    "still there, or has a longer grace period, and keeps {node}.",
)
LENT = Because("GpusLent", "{gpus} GPUs of {node} are lent to claims, which nobody moves.")
EMPTY = Because("NodeEmpty", "{node} is empty: empty nodes of {pool} are removed by {provisioner} alone.")
EMPTY_SUSPENDED = Because(
    "NodeEmptySuspended",
    "{node} is empty: {provisioner} is suspended, and no other policy removes empty nodes of {pool}.",
)
POOL_UNREADY = Because(
    "DrainPoolUnready",
    "{unready} of {size} nodes of {pool} are not ready, which is more than 3 and more than 45 %: none is drained.",
)
AT_MINIMUM = Because(
    "PoolAtMinimum", "{pool} has {size} nodes, {leaving} on their way out, and {provisioner} keeps {floor}: {why}."
)
CLUSTER_AT_MINIMUM = Because(
    "ClusterAtMinimum",
    "without {node} the cluster has {left} of {resource}, and clusterMin of {policy} is {least}.",
)
TOO_MUCH_USED = Because(
    "UtilizationTooHigh",
    "{used} of {total} {resource} of {node} are requested, {percent} %; at {threshold} % or less it goes.",
)
DESTINATION = Because("IsDestination", "{node} is to take pods of others: it is not emptied as well.")
NOT_EVALUATED = Because(
    "NotEvaluated", "there was no time in this plan to find places for the pods of {node}: the next plan begins there."
)
NOT_TRIED = Because("NotTried", "{policy} looks for no candidates in this plan: {why}")

# What keeps a pod where it is, and so its node.
KEPT_BY = "and so it keeps {node}."
DO_NOT_DISRUPT_POD = Because("PodDoNotDisrupt", "{pod} carries karpenter.sh/do-not-disrupt, " + KEPT_BY, by_person=True)
TO_COMPLETION = Because(
    "PodRunsToCompletion",
    "{pod} carries cluster-autoscaler.kubernetes.io/safe-to-evict: on-completion, and has not completed, " + KEPT_BY,
)
NOT_SAFE_TO_EVICT = Because(
    "PodNotSafeToEvict",
    "{pod} carries cluster-autoscaler.kubernetes.io/safe-to-evict: false, " + KEPT_BY,
    by_person=True,
)
SMART_POD = Because("SmartPodStays", "{pod} is a smart pod, which is not moved, " + KEPT_BY)
GANG = Because("GangStays", "{pod} is of gang {gang}, which moves together or not at all ({why}), " + KEPT_BY)
GANG_BUDGET = Because(
    "GangBudget",
    "{pod} is of gang {gang}, of which {pods} pods would leave at once, and {budget} allows {allowed} now, " + KEPT_BY,
)
GANG_NO_PLACE = Because(
    "GangWithoutPlace",
    "{pod} is of gang {gang}, which moves together or not at all, and no node that stays would take {lost} beside the "
    "others ({ruled_out}), " + KEPT_BY,
)
CREW_FULL = Because(
    "TooManyForGang",
    "{node} would go together with {other}, for the sake of a gang, and {policy} drains {most} at once: it stays now.",
)
CREW_ELSEWHERE = Because(
    "GangOfAnotherPolicy",
    "{pod} is of gang {gang}, which is to be moved off {other} by another policy, and so it keeps {node} now.",
)
CLAIM = Because(
    "PodOfClaim", "where else {pod} would have the GPUs of GpuClaim {claim} can't be told ({why}), " + KEPT_BY
)
NO_CONTROLLER = Because("PodWithoutController", "{pod} has no controller that would make it anew, " + KEPT_BY)
CUSTOM_CONTROLLER = Because(
    "PodOfCustomController",
    "{pod} is of {controller}, of which nobody knows whether it makes another when that goes, " + KEPT_BY,
)
CONTROLLER_GONE = Because(
    "PodControllerGone", "{pod} is of {controller}, which no longer exists and would not make it anew, " + KEPT_BY
)
LOCAL_STORAGE = Because("PodWithLocalStorage", "{pod} has local storage (volume {volume}), " + KEPT_BY)
SYSTEM_POD = Because(
    "SystemPod", "{pod} is of the system and has no PodDisruptionBudget, and so it keeps {node} until {time}."
)
PLACE_UNKNOWN = Because("PodPlaceUnknown", "where {pod} would fit can't be told ({why}), " + KEPT_BY)
SEVERAL_BUDGETS = Because(
    "PodSeveralBudgets", "{pod} has several PodDisruptionBudgets ({budgets}), which can't be weighed, " + KEPT_BY
)
BUDGET_UNSEEN = Because("PodBudgetUnseen", "{budgets} of {pod} has no status that is up to date, " + KEPT_BY)
BUDGET_SPENT = Because("PodBudgetSpent", "{budgets} of {pod} allows no disruption now, " + KEPT_BY)
BUDGET_TAKEN = Because(
    "PodBudgetTaken", "what {budgets} of {pod} allows is needed for others that go first, " + KEPT_BY
)
NO_PLACE = Because("PodWithoutPlace", "no node that stays would take {pod} ({ruled_out}), " + KEPT_BY)

# Why no candidates are looked for; then nothing changes for those there are.
UNREAD = Because("DrainUnread", "{policy}: {why}. No node is drained, and timers stand still.")
HOMELESS = Because(
    "LeavingPodWithoutPlace",
    "{pod}, which leaves {node}, finds no place: {policy} names no candidates, and timers stand "
    "still until it has one.",
)

# Candidates.
CANDIDATE = Because(
    "DrainCandidate", "{node} is not needed: its pods would fit on {destinations}. It goes after {minutes} min."
)
UNREADY_CANDIDATE = Because(
    "UnreadyDrainCandidate",
    "{node} is not ready, and its pods would fit on {destinations}. It goes after {minutes} min.",
)
NEXT_CANDIDATE = Because(
    "DrainCandidateNext",
    "{node} is not needed. One plan starts the timers of at most {most} nodes: its timer starts in a later plan.",
)
EMPTY_CANDIDATE = Because(
    "EmptyDrainCandidate", "{node} is empty, and no NodeProvisioner scales {pool}. It goes after {minutes} min."
)
UNREADY_EMPTY_CANDIDATE = Because(
    "UnreadyEmptyDrainCandidate", "{node} is not ready, and is empty. It goes after {minutes} min."
)
COMPLETING_CANDIDATE = Because(
    "CompletingDrainCandidate",
    "{node} is not needed. It goes once {pods} on it completed (first by name: {pod}), and not before {minutes} min.",
)
NO_CANDIDATE = Because("NoLongerCandidate", "{node} is no candidate any more: {why}")
NOT_NAMED = Because(
    "NoDrainPolicy",
    "no DrainPolicy that is not suspended names {pool}: {node} is not drained, and the taint {key} comes off.",
)
WINDOW_CLOSED = Because(
    "WindowClosed", "the windows of {policy} are closed until {time}: {node} is not drained before."
)
IN_VAIN = Because(
    "DrainedInVain",
    "at {at}, for the {times}. time, a node came for pods that were moved off nodes of {pool}: {node} is not drained "
    "before {time}.",
)
STILL_IN_VAIN = Because(
    "DrainWouldBeInVain",
    "at {at}, for the {times}. time, a node came for pods that were moved off nodes of {pool}, which has {pods} on "
    "{nodes} now: {node} is not drained until that changes.",
)
AWAITS_COMPLETION = Because(
    "DrainWaitsForCompletion", "{node} is to go, and waits for {pods} to complete (first by name: {pod})."
)
DEMAND_FIRST = Because("DrainWaitsForDemand", "pods wait for nodes of {pool}: {node} is not drained meanwhile.")
NO_SLOT = Because("NoDrainSlot", "{node} is to go, and waits: {limit}.")
THROTTLED = Because(
    "Throttled",
    "{policy} drains {draining} nodes, and {leaving} leave in all: both limits are reached ({drains} and "
    "{all}), and {waiting} wait.",
)
AWAITS_CREW = Because(
    "AwaitsOthersOfGang", "{node} is to go together with {other}, for the sake of a gang, and waits for it: {why}"
)
AWAITS_BATCH = Because("AwaitsBatch", "{node} is to go, and waits until the nodes before it were all seen tainted.")
PARTLY_EVALUATED = Because(
    "PartlyEvaluated",
    "of {nodes} nodes that {policy} looks at, {left} were not evaluated in time: the next plan begins with {node}.",
)

# Nodes that go.
DRAINED = Because("Drained", "{node} was not needed since {since}: it is emptied, and then deleted.")
REMOVED = Because(
    "EmptyNodeRemoved", "{node} is empty and was not needed since {since}: new pods are kept away, and it is deleted."
)
TAINTED_AGAIN = Because(
    "BatchCompleted",
    "{node} is to be drained with {others} others, and its taint was not seen yet: it is asked for again.",
)
BATCH_SETTLES = Because(
    "BatchSettles", "{node} is to be drained with others: nothing is evicted until all are seen tainted."
)
BATCH_TORN = Because("BatchTorn", "not all nodes of its batch could be tainted ({missing}): {node} is given back.")
MARK_UNREADABLE = Because(
    "DrainMarkUnreadable", "the taint {key} of {node} ({value}) is none that a drain puts on: it is taken off."
)
ONE_BY_ONE = Because(
    "PodWaitsForAnother", "{pod} waits, as {before} of the same owner goes first, and {old}, and so it keeps {node}."
)
SUCCESSOR_UNSEEN = Because(
    "SuccessorUnseen",
    "{pod} waits: {before} of the same owner was evicted at {time}, nobody was seen to come after it yet, and {old}, "
    "and so it keeps {node}.",
)
EVICTED = Because("PodEvicted", "{pod} is moved off {node}: {home} has room for it.")
GANG_EVICTED = Because(
    "GangEvicted",
    "{node} is emptied, and with {pod} all {pods} pods of gang {gang} leave at once: there is room on {homes}.",
)
GANG_REST = Because(
    "GangRestEvicted",
    "others of gang {gang} have left already, without which the rest is of no use: {pod} is asked to leave {node}.",
)
TOLD = Because(
    "PodToldToSave",
    "{pod} is moved off {node}, and is told to save its work first: it is evicted at {time}, or as soon as it "
    "says that it has.",
)
TOLD_CUT = Because(
    "PodToldToSaveSooner",
    "{pod} is moved off {node}, and is told to save its work first: of {written} it has {seconds} s, the most "
    "that {policy} gives, until {time}, or until it says that it has.",
)
TOLD_UNREADABLE = Because(
    "PodCheckpointUnreadable",
    "{pod} is moved off {node}, and carries gpu.scheduling/checkpoint: {written}, which is no duration such as 120s: "
    "it has the {seconds} s that {policy} gives at most to save its work, until {time}.",
)
SAVES = Because("PodSavesItsWork", "{pod} on {node} saves its work: it is evicted at {time}, or as soon as it has.")
EVICTED_SAVED = Because("PodEvictedSaved", "{pod} saved its work at {time}, and is moved off {node} to {home}.")
EVICTED_UNSAVED = Because(
    "PodEvictedUnsaved",
    "{pod} had {seconds} s to save its work and has not said that it did: it is moved off {node} to {home}.",
)
CALLED_OFF = Because(
    "EvictionCalledOff",
    "{pod} was told to save its work, and stays: {node} is not emptied any more. gpu.scheduling/evict-at comes off.",
)
WAITS_TURN = Because(
    "PodWaitsItsTurn",
    "{pod} waits on {node} until {others} that left before it are in their places: wherever those go, its own is kept.",
)
DAEMON_EVICTED = Because("DaemonPodEvicted", "{pod} is asked to leave {node}, on which nothing else is left.")
POD_LEAVES = Because("PodLeaves", "{pods} on {node} are on their way out.")
WAITS_EMPTY = Because("EmptiedNodeWaits", "{node} is empty: it is deleted at {time} if nothing comes.")
DELETED = Because("DrainedNodeDeleted", "{node} has been empty for a minute: it is deleted.")
GIVEN_BACK = Because(
    "GivenBack",
    "{node} could not be emptied in time, within {minutes} min of its last eviction: {why} It is given back.",
)
NEEDED_AGAIN = Because(
    "DrainedNodeNeeded",
    "{node} was emptied, and {pool} lacks {lacks} by now ({why}): its taint comes off, and it stays.",
)

# Why a node is a candidate.
CANDIDATES = frozenset(
    each.code for each in (CANDIDATE, UNREADY_CANDIDATE, EMPTY_CANDIDATE, UNREADY_EMPTY_CANDIDATE, COMPLETING_CANDIDATE)
)

# Why nobody can empty a node.
LOSES = frozenset({LOST.code, LOST_WITH_POD.code})

# With these a node begins to be emptied.
BEGINS = frozenset({DRAINED.code, REMOVED.code})

# No reason to take a timer back: nobody looked.
KEEPS_TIMER = frozenset({BEING_DRAINED.code, OTHERS_TURN.code, NOT_EVALUATED.code, NOT_TRIED.code})

# Of nodes, by which nothing is held that was asked for: they are told where a node is asked about.
RESTING = CANDIDATES | {each.code for each in (NEXT_CANDIDATE, WAITS_EMPTY, POD_LEAVES, BATCH_SETTLES, SAVES)}

# Holds that would be, in a pool that is only observed: what candidates wait for.
SUPPOSED = CANDIDATES | {
    each.code
    for each in (NEXT_CANDIDATE, WINDOW_CLOSED, IN_VAIN, AWAITS_COMPLETION, NO_SLOT, AWAITS_CREW, AWAITS_BATCH)
}

ELIGIBILITY = (
    FROZEN_NODE, BEING_DRAINED, SCALED_DOWN, OTHERS_TURN, JUST_CAME, LOST, LOST_WITH_POD, LEAVES_SLOWLY, SET_BACK, LENT,
    EMPTY, EMPTY_SUSPENDED, POOL_UNREADY, AT_MINIMUM, CLUSTER_AT_MINIMUM, TOO_MUCH_USED, DESTINATION, NOT_EVALUATED,
    NOT_TRIED,
)  # fmt: skip
BLOCKERS = (
    TO_COMPLETION, DO_NOT_DISRUPT_POD, NOT_SAFE_TO_EVICT, SMART_POD, GANG, GANG_BUDGET, GANG_NO_PLACE, CREW_FULL,
    CREW_ELSEWHERE, CLAIM, NO_CONTROLLER, CUSTOM_CONTROLLER, CONTROLLER_GONE, LOCAL_STORAGE, SYSTEM_POD, PLACE_UNKNOWN,
    SEVERAL_BUDGETS, BUDGET_UNSEEN, BUDGET_SPENT, BUDGET_TAKEN, NO_PLACE,
)  # fmt: skip
REASONS = (
    *ELIGIBILITY, *BLOCKERS, UNREAD, HOMELESS, CANDIDATE, UNREADY_CANDIDATE, NEXT_CANDIDATE, EMPTY_CANDIDATE,
    UNREADY_EMPTY_CANDIDATE, COMPLETING_CANDIDATE, NO_CANDIDATE, NOT_NAMED, WINDOW_CLOSED, IN_VAIN, STILL_IN_VAIN,
    AWAITS_COMPLETION, DEMAND_FIRST, NO_SLOT, AWAITS_CREW,
    THROTTLED, AWAITS_BATCH, PARTLY_EVALUATED, DRAINED, REMOVED, TAINTED_AGAIN, BATCH_SETTLES,
    BATCH_TORN, MARK_UNREADABLE, EVICTED, GANG_EVICTED, GANG_REST, DAEMON_EVICTED, POD_LEAVES,
    WAITS_EMPTY, DELETED, GIVEN_BACK, TOLD, TOLD_CUT, TOLD_UNREADABLE, SAVES, EVICTED_SAVED, EVICTED_UNSAVED,
    NEEDED_AGAIN, CALLED_OFF, ONE_BY_ONE, SUCCESSOR_UNSEEN, WAITS_TURN,
)  # fmt: skip
