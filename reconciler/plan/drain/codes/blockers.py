"""Reason codes for nodes that are no candidates: why a node is not eligible, and what keeps its pods."""

from typing import ClassVar

from reconciler.model import names
from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import CodeFacts, Facts, Obstacle, Reason, Ref
from reconciler.plan.capacity.demand import ClaimDoubt
from reconciler.plan.drain.codes.words import Floor, FreezeEnd, NodesWithoutRoom, TaintTime

_KEPT = "so the pod stays on {node}."


class PodBlocker(CodeFacts, frozen=True):
    """Base of blockers that name a pod of the node."""

    # Whether each pod with this blocker keeps the node independently of the others. `explain` then removes the blockers
    # of all these pods together, to tell what else keeps the node.
    is_independent: ClassVar[bool] = True

    pod: Ref
    node: str


class AnnotationBlocker(PodBlocker, frozen=True):
    """Base of blockers by the value of one annotation of the pod. From the class follow: the rule
    (drain/blockers.py), the exemption of DaemonSet pods from eviction, and the change that `explain` proposes.
    CONTRIBUTING.md has the recipe for a further annotation.
    """

    key: ClassVar[str]
    field: ClassVar[str]  # of model.cluster.metadata.Annotations
    value: ClassVar[str]

    @classmethod
    def keeps(cls, pod: Pod) -> bool:
        """Whether the pod has the annotation with that value."""
        return bool(getattr(pod.metadata.annotations, cls.field) == cls.value)


class BudgetBlocker(PodBlocker, frozen=True):
    """Base of blockers that name PodDisruptionBudgets of the pod."""

    budgets: tuple[Ref, ...]


class PodDoNotDisrupt(PodBlocker, frozen=True):
    template = "{pod} has the annotation karpenter.sh/do-not-disrupt, " + _KEPT
    by_person = True


class PodRunsToCompletion(AnnotationBlocker, frozen=True):
    template = f"{{pod}} has the annotation {names.SAFE_TO_EVICT}: on-completion and has not completed, {_KEPT}"
    key, field, value = names.SAFE_TO_EVICT, "safe_to_evict", "on-completion"


class PodNotSafeToEvict(AnnotationBlocker, frozen=True):
    template = f"{{pod}} has the annotation {names.SAFE_TO_EVICT}: false, {_KEPT}"
    by_person = True
    key, field, value = names.SAFE_TO_EVICT, "safe_to_evict", "false"


class SmartPodStays(PodBlocker, frozen=True):
    template = "{pod} is a smart pod, and smart pods are not moved, " + _KEPT


class GangStays(PodBlocker, frozen=True):
    is_independent = False
    template = "{pod} is in gang {gang}, whose pods move only together ({why}), " + _KEPT

    gang: str
    why: Reason


class GangBudget(PodBlocker, frozen=True):
    is_independent = False
    template = (
        "{pod} is in gang {gang}: its {pods} pods must leave together, but {budget} allows only {allowed:disruption}, "
        + _KEPT
    )

    gang: str
    pods: int
    budget: Ref
    allowed: int


class GangWithoutPlace(PodBlocker, frozen=True):
    is_independent = False
    template = (
        "{pod} is in gang {gang}, whose pods move only together, and no remaining node has room for {lost} in "
        "addition to the other pods ({ruled_out}), " + _KEPT
    )

    gang: str
    lost: Ref
    ruled_out: NodesWithoutRoom


class TooManyForGang(CodeFacts, frozen=True):
    template = (
        "{node} must be drained together with {other} because of a gang, and {policy} drains at most {most} nodes at "
        "the same time: {node} is not drained now."
    )

    node: str
    other: str
    policy: Ref
    most: int
    nodes: int  # nodes that must drain together


class GangOfAnotherPolicy(PodBlocker, frozen=True):
    is_independent = False
    template = "{pod} is in gang {gang}, which another policy moves off {other}, so the pod stays on {node} for now."

    gang: str
    other: str


class PodOfClaim(PodBlocker, frozen=True):
    template = "it is unknown which other nodes have the GPUs of GpuClaim {claim} of {pod} ({why}), " + _KEPT

    claim: str
    why: ClaimDoubt


class PodWithoutController(PodBlocker, frozen=True):
    template = "{pod} has no controller that would recreate the pod, " + _KEPT


class PodOfCustomController(PodBlocker, frozen=True):
    template = (
        "{pod} belongs to {controller}, and it is unknown whether that controller recreates evicted pods, " + _KEPT
    )

    controller: Ref  # without a namespace


class PodControllerGone(PodBlocker, frozen=True):
    template = "{pod} belongs to {controller}, which no longer exists and can't recreate the pod, " + _KEPT

    controller: Ref  # without a namespace


class PodWithLocalStorage(PodBlocker, frozen=True):
    template = "{pod} uses local storage (volume {volume}), " + _KEPT

    volume: str


class SystemPod(PodBlocker, frozen=True):
    template = (
        "{pod} is a system pod without a PodDisruptionBudget, so the pod stays on {node} until "
        "{time:time|its creation time is known}."
    )

    time: Instant | None


class PodPlaceUnknown(PodBlocker, frozen=True):
    template = "it is unknown on which nodes {pod} fits ({why}), " + _KEPT

    why: Obstacle


class PodSeveralBudgets(BudgetBlocker, frozen=True):
    is_independent = False
    template = "{pod} has several PodDisruptionBudgets ({budgets}), which the eviction API does not support, " + _KEPT


class PodBudgetUnseen(BudgetBlocker, frozen=True):
    template = "{budgets} of {pod} has no up-to-date status, " + _KEPT


class PodBudgetSpent(BudgetBlocker, frozen=True):
    template = "{budgets} of {pod} allows no disruption now, " + _KEPT


class PodBudgetTaken(BudgetBlocker, frozen=True):
    is_independent = False
    template = "{budgets} of {pod} allows only the evictions of pods that leave first, " + _KEPT


class PodWithoutPlace(PodBlocker, frozen=True):
    is_independent = False
    template = "no remaining node has room for {pod} ({ruled_out:|not searched}), " + _KEPT

    ruled_out: NodesWithoutRoom | None


# Why a gang stays, if no pod of the gang has a blocker of its own.
class GangPodNotDrained(CodeFacts, frozen=True):
    template = "{pod} runs on {place}, and drains do not move the pods of {place}."

    pod: Ref
    place: str  # name of a node


class GangPodObserved(CodeFacts, frozen=True):
    template = "{pod} runs in {pool}, which is only observed."

    pod: Ref
    pool: str


class GangLeavesAlready(CodeFacts, frozen=True):
    template = "other pods of the gang are already leaving."


class GangSavesItsWork(CodeFacts, frozen=True):
    template = "other pods of the gang are saving their work."


class GangNotTainted(CodeFacts, frozen=True):
    template = "the taint has not been observed on all nodes of the gang yet."


class GangActedOn(CodeFacts, frozen=True):
    template = "this plan has another action on the gang."


class GangPodUnplaced(CodeFacts, frozen=True):
    template = "no node has room for {pod}."

    pod: Ref


ANNOTATION_BLOCKERS = (PodRunsToCompletion, PodNotSafeToEvict)
BLOCKERS = (
    *ANNOTATION_BLOCKERS,
    PodDoNotDisrupt,
    SmartPodStays,
    GangStays,
    GangBudget,
    GangWithoutPlace,
    TooManyForGang,
    GangOfAnotherPolicy,
    PodOfClaim,
    PodWithoutController,
    PodOfCustomController,
    PodControllerGone,
    PodWithLocalStorage,
    SystemPod,
    PodPlaceUnknown,
    PodSeveralBudgets,
    PodBudgetUnseen,
    PodBudgetSpent,
    PodBudgetTaken,
    PodWithoutPlace,
)
GANG_CAUSES = (
    GangPodNotDrained, GangPodObserved, GangLeavesAlready, GangSavesItsWork, GangNotTainted, GangActedOn,
    GangPodUnplaced,
)  # fmt: skip


# --- Why a node is no candidate for a drain, in the order of the rules in candidates.py.


class FrozenNode(CodeFacts, frozen=True):
    template = "{what} is frozen {until:|until spec.suspend is removed}: {node} is not a candidate."

    what: str
    until: FreezeEnd | None  # None: the pool is suspended
    node: str


class BeingDrained(CodeFacts, frozen=True):
    template = "{node} has been draining since {since}."

    node: str
    since: TaintTime


class ScaledDown(CodeFacts, frozen=True):
    template = "{node} is being removed by scaling, so {node} is not drained."

    node: str


class OthersTurn(CodeFacts, frozen=True):
    template = "{planner} acts on {node} in this plan: drains consider the node again in the next plan."

    planner: str
    node: str


class NodeSettles(CodeFacts, frozen=True):
    template = "{node} is new and settles until {time:time}: its pods may not have arrived yet."

    node: str
    time: Instant


class DrainFailedLately(CodeFacts, frozen=True):
    template = (
        "the drain of {node} was cancelled at {at:time} ({cause}; {times:failure} in a row): {node} is not drained "
        "again before {until:time}."
    )

    node: str
    at: Instant
    cause: str  # code of the reason
    times: int
    until: Instant


class NodeLost(CodeFacts, frozen=True):
    template = (
        "{node} is not ready, its kubelet has stopped reporting, and Karpenter does not manage the node, so its "
        "machine is not terminated automatically. Terminate the machine and delete the Node."
    )
    by_person = True

    node: str


class NodeLostWithPod(CodeFacts, frozen=True):
    template = (
        "{node} is not ready, {pod} stays Terminating on the node, and Karpenter does not manage the node, so its "
        "machine is not terminated automatically. Terminate the machine and delete the Node."
    )
    by_person = True

    node: str
    pod: Ref


class PodLeavesSlowly(CodeFacts, frozen=True):
    template = (
        "{pod} is terminating and should have ended by {time:time}, within the {seconds} s that {policy} allows at "
        "most; the pod still exists, or has a longer grace period, so {node} is not drained."
    )

    pod: Ref
    time: Instant
    seconds: int
    policy: Ref
    node: str


class GpusLent(CodeFacts, frozen=True):
    template = "pods with a GpuClaim hold {gpus:GPU} of {node}, and a node with lent GPUs is not drained."

    gpus: int
    node: str


class NodeEmpty(CodeFacts, frozen=True):
    template = "{node} is empty: only {provisioner} removes empty nodes of {pool}."

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
        "{unready} of {size} nodes of {pool} are not ready, more than 3 and more than 45 %: no node of the pool is "
        "drained."
    )

    unready: int
    size: int
    pool: str


class PoolAtMinimum(CodeFacts, frozen=True):
    template = "{pool} has {size} nodes, {leaving} of them leaving, and {provisioner} keeps {floor.nodes}: {floor}."

    pool: str
    size: int
    leaving: int
    provisioner: Ref
    floor: Floor


class ClusterAtMinimum(CodeFacts, frozen=True):
    template = "without {node} the cluster has {left} {resource}, less than clusterMin {least} of {policy}."

    node: str
    resource: str
    left: str  # quantities as Kubernetes writes them
    least: str
    policy: Ref


class UtilizationTooHigh(CodeFacts, frozen=True):
    template = (
        "{used} of {total} {resource} of {node} are requested, {percent} %: more than the threshold of {threshold} %."
    )

    used: int
    total: int
    resource: str
    node: str
    percent: int
    threshold: int


class IsDestination(CodeFacts, frozen=True):
    template = "{node} is the destination of pods from other nodes, so {node} is not drained."

    node: str


class NotEvaluated(CodeFacts, frozen=True):
    template = "this plan had no time to evaluate {node}: the next plan starts with that node."

    node: str


class NotTried(CodeFacts, frozen=True):
    template = "{policy} evaluates no candidates in this plan, because {pod}, which leaves {leaves}, fits on no node."

    policy: Ref
    pod: Ref
    leaves: str  # name of a node


ELIGIBILITY = (
    FrozenNode, BeingDrained, ScaledDown, OthersTurn, NodeSettles, NodeLost, NodeLostWithPod, PodLeavesSlowly,
    DrainFailedLately, GpusLent, NodeEmpty, NodeEmptySuspended, DrainPoolUnready, PoolAtMinimum, ClusterAtMinimum,
    UtilizationTooHigh, IsDestination, NotEvaluated, NotTried,
)  # fmt: skip

# Reasons for which nobody can empty a node.
LOSES: frozenset[type[Facts]] = frozenset({NodeLost, NodeLostWithPod})

# Reasons that keep the timer of a candidate, because the node was not evaluated.
KEEPS_TIMER: frozenset[type[Facts]] = frozenset({BeingDrained, OthersTurn, NotEvaluated, NotTried})
