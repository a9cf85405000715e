"""What keeps a pod where it is, and so its node."""

from reconciler.model.instant import Instant
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan.action import Ref
from reconciler.model.plan.reason import CodeFacts, Reason
from reconciler.plan.capacity.claims import ClaimDoubt
from reconciler.plan.drain.codes.figures import NodesWithoutRoom

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
