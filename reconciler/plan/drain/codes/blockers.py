"""Codes of nodes that are no candidates: why a node is not eligible, and what keeps its pods there."""

from reconciler.model.instant import Instant
from reconciler.model.plan.decision import CodeFacts, Facts, Obstacle, Reason, Ref
from reconciler.plan.capacity.demand import ClaimDoubt
from reconciler.plan.drain.codes.words import Floor, FreezeEnd, NodesWithoutRoom, TaintTime

_KEPT = "and so it keeps {node}."


class PodBlocker(CodeFacts, frozen=True):
    """The base of those that name a pod of the node."""

    pod: Ref
    node: str


class BudgetBlocker(PodBlocker, frozen=True):
    """The base of those that name its PodDisruptionBudgets."""

    budgets: tuple[Ref, ...]


class PodDoNotDisrupt(PodBlocker, frozen=True):
    template = "{pod} carries karpenter.sh/do-not-disrupt, " + _KEPT
    by_person = True


class PodRunsToCompletion(PodBlocker, frozen=True):
    template = (
        "{pod} carries cluster-autoscaler.kubernetes.io/safe-to-evict: on-completion, and has not completed, " + _KEPT
    )


class PodNotSafeToEvict(PodBlocker, frozen=True):
    template = "{pod} carries cluster-autoscaler.kubernetes.io/safe-to-evict: false, " + _KEPT
    by_person = True


class SmartPodStays(PodBlocker, frozen=True):
    template = "{pod} is a smart pod, which is not moved, " + _KEPT


class GangStays(PodBlocker, frozen=True):
    template = "{pod} is of gang {gang}, which moves together or not at all ({why}), " + _KEPT

    gang: str
    why: Reason


class GangBudget(PodBlocker, frozen=True):
    template = (
        "{pod} is of gang {gang}, of which {pods} pods would leave at once, and {budget} allows {allowed} now, " + _KEPT
    )

    gang: str
    pods: int
    budget: Ref
    allowed: int


class GangWithoutPlace(PodBlocker, frozen=True):
    template = (
        "{pod} is of gang {gang}, which moves together or not at all, and no node that stays would take {lost} beside "
        "the others ({ruled_out}), " + _KEPT
    )

    gang: str
    lost: Ref
    ruled_out: NodesWithoutRoom


class TooManyForGang(CodeFacts, frozen=True):
    template = (
        "{node} would go together with {other}, for the sake of a gang, and {policy} drains {most} at once: it stays "
        "now."
    )

    node: str
    other: str
    policy: Ref
    most: int
    nodes: int  # that would go together


class GangOfAnotherPolicy(PodBlocker, frozen=True):
    template = (
        "{pod} is of gang {gang}, which is to be moved off {other} by another policy, and so it keeps {node} now."
    )

    gang: str
    other: str


class PodOfClaim(PodBlocker, frozen=True):
    template = "where else {pod} would have the GPUs of GpuClaim {claim} can't be told ({why}), " + _KEPT

    claim: str
    why: ClaimDoubt


class PodWithoutController(PodBlocker, frozen=True):
    template = "{pod} has no controller that would make it anew, " + _KEPT


class PodOfCustomController(PodBlocker, frozen=True):
    template = "{pod} is of {controller}, of which nobody knows whether it makes another when that goes, " + _KEPT

    controller: Ref  # without a namespace


class PodControllerGone(PodBlocker, frozen=True):
    template = "{pod} is of {controller}, which no longer exists and would not make it anew, " + _KEPT

    controller: Ref  # without a namespace


class PodWithLocalStorage(PodBlocker, frozen=True):
    template = "{pod} has local storage (volume {volume}), " + _KEPT

    volume: str


class SystemPod(PodBlocker, frozen=True):
    template = (
        "{pod} is of the system and has no PodDisruptionBudget, and so it keeps {node} until "
        "{time:time|its time of creation is known}."
    )

    time: Instant | None


class PodPlaceUnknown(PodBlocker, frozen=True):
    template = "where {pod} would fit can't be told ({why}), " + _KEPT

    why: Obstacle


class PodSeveralBudgets(BudgetBlocker, frozen=True):
    template = "{pod} has several PodDisruptionBudgets ({budgets}), which can't be weighed, " + _KEPT


class PodBudgetUnseen(BudgetBlocker, frozen=True):
    template = "{budgets} of {pod} has no status that is up to date, " + _KEPT


class PodBudgetSpent(BudgetBlocker, frozen=True):
    template = "{budgets} of {pod} allows no disruption now, " + _KEPT


class PodBudgetTaken(BudgetBlocker, frozen=True):
    template = "what {budgets} of {pod} allows is needed for others that go first, " + _KEPT


class PodWithoutPlace(PodBlocker, frozen=True):
    template = "no node that stays would take {pod} ({ruled_out:|it was not looked for}), " + _KEPT

    ruled_out: NodesWithoutRoom | None


# Why a gang stays, where no pod of it is kept by what keeps any other pod.
class GangPodNotDrained(CodeFacts, frozen=True):
    template = "{pod} runs on {place}, where no drain moves anything."

    pod: Ref
    place: str  # name of a node


class GangPodObserved(CodeFacts, frozen=True):
    template = "{pod} runs in {pool}, which is only observed."

    pod: Ref
    pool: str


class GangLeavesAlready(CodeFacts, frozen=True):
    template = "others of it leave already."


class GangSavesItsWork(CodeFacts, frozen=True):
    template = "others of it save their work."


class GangNotTainted(CodeFacts, frozen=True):
    template = "not all of its nodes are seen tainted yet."


class GangActedOn(CodeFacts, frozen=True):
    template = "something else is done to it in this plan."


class GangPodUnplaced(CodeFacts, frozen=True):
    template = "there is no place for {pod}."

    pod: Ref


BLOCKERS = (
    PodRunsToCompletion, PodDoNotDisrupt, PodNotSafeToEvict, SmartPodStays, GangStays, GangBudget, GangWithoutPlace,
    TooManyForGang, GangOfAnotherPolicy, PodOfClaim, PodWithoutController, PodOfCustomController, PodControllerGone,
    PodWithLocalStorage, SystemPod, PodPlaceUnknown, PodSeveralBudgets, PodBudgetUnseen, PodBudgetSpent,
    PodBudgetTaken, PodWithoutPlace,
)  # fmt: skip
GANG_CAUSES = (
    GangPodNotDrained, GangPodObserved, GangLeavesAlready, GangSavesItsWork, GangNotTainted, GangActedOn,
    GangPodUnplaced,
)  # fmt: skip


# --- Why a node is no candidate for a drain, in the order in which candidates.py looks.


class FrozenNode(CodeFacts, frozen=True):
    template = "{what} is frozen {until:|until suspend is taken back}: {node} is no candidate."

    what: str
    until: FreezeEnd | None  # None: its pool is suspended
    node: str


class BeingDrained(CodeFacts, frozen=True):
    template = "{node} is being drained already, since {since}."

    node: str
    since: TaintTime


class ScaledDown(CodeFacts, frozen=True):
    template = "{node} is taken away by scaling, which owns it until then."

    node: str


class OthersTurn(CodeFacts, frozen=True):
    template = "{planner} acts on {node} in this plan: it is looked at again in the next."

    planner: str
    node: str


class NodeSettles(CodeFacts, frozen=True):
    template = "{node} has just come, and settles until {time:time}: its pods are on their way."

    node: str
    time: Instant


class DrainFailedLately(CodeFacts, frozen=True):
    template = (
        "{node} was given back at {at:time} ({cause}), for the {times}. time: it is left alone until {until:time}."
    )

    node: str
    at: Instant
    cause: str  # the code of the reason
    times: int
    until: Instant


class NodeLost(CodeFacts, frozen=True):
    template = (
        "{node} is not ready, its kubelet has stopped to report, and nobody ends its machine: the node is not "
        "Karpenter's. End the machine and delete the Node."
    )
    by_person = True

    node: str


class NodeLostWithPod(CodeFacts, frozen=True):
    template = (
        "{node} is not ready, {pod} stays Terminating there, and nobody ends its machine: the node is not Karpenter's. "
        "End the machine and delete the Node."
    )
    by_person = True

    node: str
    pod: Ref


class PodLeavesSlowly(CodeFacts, frozen=True):
    template = (
        "{pod} is being deleted and was to be gone by {time:time}, within the {seconds} s that {policy} allows at "
        "most; it is still there, or has a longer grace period, and keeps {node}."
    )

    pod: Ref
    time: Instant
    seconds: int
    policy: Ref
    node: str


class GpusLent(CodeFacts, frozen=True):
    template = "{gpus} GPUs of {node} are lent to claims, which nobody moves."

    gpus: int
    node: str


class NodeEmpty(CodeFacts, frozen=True):
    template = "{node} is empty: empty nodes of {pool} are removed by {provisioner} alone."

    node: str
    pool: str
    provisioner: Ref


class NodeEmptySuspended(CodeFacts, frozen=True):
    template = "{node} is empty: {provisioner} is suspended, and no other policy removes empty nodes of {pool}."

    node: str
    pool: str
    provisioner: Ref


class DrainPoolUnready(CodeFacts, frozen=True):
    template = (
        "{unready} of {size} nodes of {pool} are not ready, which is more than 3 and more than 45 %: none is drained."
    )

    unready: int
    size: int
    pool: str


class PoolAtMinimum(CodeFacts, frozen=True):
    template = "{pool} has {size} nodes, {leaving} on their way out, and {provisioner} keeps {floor.nodes}: {floor}."

    pool: str
    size: int
    leaving: int
    provisioner: Ref
    floor: Floor


class ClusterAtMinimum(CodeFacts, frozen=True):
    template = "without {node} the cluster has {left} of {resource}, and clusterMin of {policy} is {least}."

    node: str
    resource: str
    left: str  # amounts as Kubernetes writes them
    least: str
    policy: Ref


class UtilizationTooHigh(CodeFacts, frozen=True):
    template = "{used} of {total} {resource} of {node} are requested, {percent} %; at {threshold} % or less it goes."

    used: int
    total: int
    resource: str
    node: str
    percent: int
    threshold: int


class IsDestination(CodeFacts, frozen=True):
    template = "{node} is to take pods of others: it is not emptied as well."

    node: str


class NotEvaluated(CodeFacts, frozen=True):
    template = "there was no time in this plan to find places for the pods of {node}: the next plan begins there."

    node: str


class NotTried(CodeFacts, frozen=True):
    template = "{policy} looks for no candidates in this plan: {pod}, which leaves {leaves}, finds no place."

    policy: Ref
    pod: Ref
    leaves: str  # name of a node


ELIGIBILITY = (
    FrozenNode, BeingDrained, ScaledDown, OthersTurn, NodeSettles, NodeLost, NodeLostWithPod, PodLeavesSlowly,
    DrainFailedLately, GpusLent, NodeEmpty, NodeEmptySuspended, DrainPoolUnready, PoolAtMinimum, ClusterAtMinimum,
    UtilizationTooHigh, IsDestination, NotEvaluated, NotTried,
)  # fmt: skip

# Why nobody can empty a node.
LOSES: frozenset[type[Facts]] = frozenset({NodeLost, NodeLostWithPod})

# No reason to take a timer back: nobody looked.
KEEPS_TIMER: frozenset[type[Facts]] = frozenset({BeingDrained, OthersTurn, NotEvaluated, NotTried})
