"""Why a node is no candidate for a drain, in the order in which candidates.py looks."""

from reconciler.model.instant import Instant
from reconciler.model.plan.action import Ref
from reconciler.model.plan.reason import CodeFacts, Facts
from reconciler.plan.drain.codes.figures import Floor, FreezeEnd, TaintTime


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
