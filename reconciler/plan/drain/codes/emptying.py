"""Reason codes for draining nodes: why a node is drained, why its pods are evicted or wait, and why it is kept or
deleted.
"""

from reconciler.model.cluster.observed import Quiet
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import CodeFacts, Facts, Reason, Ref


class Drained(CodeFacts, frozen=True):
    template = "{node} has been unneeded since {since:time}: the node is drained and then deleted."

    node: str
    since: Instant


class EmptyNodeRemoved(CodeFacts, frozen=True):
    template = (
        "{node} is empty and has been unneeded since {since:time}: the node is tainted against new pods and then "
        "deleted."
    )

    node: str
    since: Instant


class BatchCompleted(CodeFacts, frozen=True):
    template = (
        "{node} is drained in a batch with {others} other nodes, and its taint was not observed: the taint is written "
        "again."
    )

    node: str
    others: int


class BatchSettles(CodeFacts, frozen=True):
    template = (
        "{node} is drained in a batch: no pod is evicted until the taint has been observed on all nodes of the batch."
    )

    node: str


class BatchTorn(CodeFacts, frozen=True):
    template = (
        "not all nodes of the batch could be tainted ({missing:|some were not observed}): the drain of {node} is "
        "cancelled."
    )

    missing: tuple[str, ...]  # names of the first known nodes
    node: str


class DrainMarkUnreadable(CodeFacts, frozen=True):
    template = "the taint {key} of {node} has a value ({value}) that no drain writes: the taint is removed."

    key: str
    node: str
    value: str


class PodWaitsForAnother(CodeFacts, frozen=True):
    template = "{before} of the same owner is evicted first, and {old}, so {pod} waits on {node}."

    pod: Ref
    before: Ref
    old: Quiet  # the silent watch that the observation depends on
    node: str


class SuccessorUnseen(CodeFacts, frozen=True):
    template = (
        "{before} of the same owner was evicted at {time:time}, its successor has not been observed yet, and {old}, "
        "so {pod} waits on {node}."
    )

    pod: Ref
    before: Ref
    time: Instant
    old: Quiet
    node: str


class PodEvicted(CodeFacts, frozen=True):
    template = "{pod} is evicted from {node}: {home} has room for the pod."

    pod: Ref
    node: str
    home: str


class GangEvicted(CodeFacts, frozen=True):
    template = (
        "{node} is drained, and all {pods} pods of gang {gang}, {pod} included, leave together: there is room on "
        "{homes}."
    )

    node: str
    pod: Ref
    pods: int
    gang: str
    homes: tuple[str, ...]  # names of nodes


class GangRestEvicted(CodeFacts, frozen=True):
    template = "other pods of gang {gang} have left, and the gang can't run without them: {pod} is evicted from {node}."

    gang: str
    pod: Ref
    node: str


class PodToldToSave(CodeFacts, frozen=True):
    template = (
        "{pod} must leave {node} and may save its work first: the pod is evicted at {time:time}, or as soon as it "
        "reports a checkpoint."
    )

    pod: Ref
    node: str
    time: Instant
    seconds: int


class PodToldToSaveSooner(CodeFacts, frozen=True):
    template = (
        "{pod} must leave {node} and may save its work first: the pod asks for {written}, and {policy} allows at most "
        "{seconds} s. The pod is evicted at {time:time}, or as soon as it reports a checkpoint."
    )

    pod: Ref
    node: str
    written: str  # the value of gpu.scheduling/checkpoint
    seconds: int
    policy: Ref
    time: Instant


class PodCheckpointUnreadable(CodeFacts, frozen=True):
    template = (
        "{pod} must leave {node}, and its annotation gpu.scheduling/checkpoint: {written} is not a duration such as "
        "120s: the pod has {seconds} s to save its work, the maximum of {policy}, until {time:time}."
    )

    pod: Ref
    node: str
    written: str
    seconds: int
    policy: Ref
    time: Instant


class PodSavesItsWork(CodeFacts, frozen=True):
    template = (
        "{pod} on {node} is saving its work: the pod is evicted at {time:time}, or as soon as it reports a checkpoint."
    )

    pod: Ref
    node: str
    time: Instant


class PodEvictedSaved(CodeFacts, frozen=True):
    template = "{pod} saved its work at {written} and is evicted from {node}: {home} has room for the pod."

    pod: Ref
    written: str  # the value of gpu.scheduling/checkpointed-at
    node: str
    home: str


class PodEvictedUnsaved(CodeFacts, frozen=True):
    template = (
        "{pod} had {seconds} s to save its work and reported no checkpoint: the pod is evicted from {node}, and "
        "{home} has room for the pod."
    )

    pod: Ref
    seconds: int
    node: str
    home: str


class EvictionCalledOff(CodeFacts, frozen=True):
    template = "{node} is no longer draining, so {pod} stays: its annotation gpu.scheduling/evict-at is removed."

    pod: Ref
    node: str


class PodWaitsItsTurn(CodeFacts, frozen=True):
    template = (
        "{pod} waits on {node} until the successors of {others:pod} are scheduled, because the scheduler could place "
        "them in the room that {pod} needs."
    )

    pod: Ref
    node: str
    others: int


class DaemonPodEvicted(CodeFacts, frozen=True):
    template = "{pod} of a DaemonSet is evicted from {node}, because no other pods are left."

    pod: Ref
    node: str


class PodLeaves(CodeFacts, frozen=True):
    template = "{node} waits for the termination of {pods:pod}."

    pods: int
    node: str


class EmptiedNodeWaits(CodeFacts, frozen=True):
    template = "{node} is empty: the node is deleted at {time:time} unless a pod arrives."

    node: str
    time: Instant


class DrainedNodeDeleted(CodeFacts, frozen=True):
    template = "{node} has been empty for a minute: the node is deleted."

    node: str


class GivenBack(CodeFacts, frozen=True):
    template = "{node} was not empty within {minutes} min of its last eviction: {why}. The drain is cancelled."

    node: str
    minutes: int
    why: Reason


class DrainedNodeNeeded(CodeFacts, frozen=True):
    template = (
        "{node} was drained, but {pool} now lacks {lacks:node|a node} ({why}): the taint is removed, and {node} stays."
    )

    node: str
    pool: str
    lacks: int | None  # number of nodes; None: the cluster as a whole lacks capacity
    why: Reason


# Why a drain is cancelled, or a drained node is needed again.
class EvictedPodsStay(CodeFacts, frozen=True):
    template = "evicted pods still exist."


class BelowMinSize(CodeFacts, frozen=True):
    template = "{field} is {min_size}, and only {staying:node} would remain."

    min_size: int  # value of the field
    staying: int
    field: str = "minSize"


class PodsWaitForCapacity(CodeFacts, frozen=True):
    template = "pods wait for capacity."


class WarmNodesLacking(CodeFacts, frozen=True):
    template = "the pool has too few warm nodes."


class EvictedPodWithoutPlace(CodeFacts, frozen=True):
    template = "{pod} was evicted recently and fits on no other node."

    pod: Ref


class BelowClusterMin(CodeFacts, frozen=True):
    template = "without the node the cluster has {left} {resource}, less than clusterMin {least}."

    left: str  # quantities as Kubernetes writes them
    resource: str
    least: str


EMPTYING = (
    Drained, EmptyNodeRemoved, BatchCompleted, BatchSettles, BatchTorn, DrainMarkUnreadable, PodEvicted, GangEvicted,
    GangRestEvicted, DaemonPodEvicted, PodLeaves, EmptiedNodeWaits, DrainedNodeDeleted, GivenBack, PodToldToSave,
    PodToldToSaveSooner, PodCheckpointUnreadable, PodSavesItsWork, PodEvictedSaved, PodEvictedUnsaved,
    DrainedNodeNeeded, EvictionCalledOff, PodWaitsForAnother, SuccessorUnseen, PodWaitsItsTurn,
)  # fmt: skip
CAUSES = (
    EvictedPodsStay, BelowMinSize, PodsWaitForCapacity, WarmNodesLacking, EvictedPodWithoutPlace, BelowClusterMin,
)  # fmt: skip

# Reasons with which the drain of a node begins.
BEGINS: frozenset[type[Facts]] = frozenset({Drained, EmptyNodeRemoved})
