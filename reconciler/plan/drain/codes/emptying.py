"""Of nodes that go: why one is emptied, why its pods are asked to leave or wait, why it is given back or deleted."""

from reconciler.model.cluster.observed import Quiet
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import CodeFacts, Facts, Reason, Ref


class Drained(CodeFacts, frozen=True):
    template = "{node} was not needed since {since:time}: it is emptied, and then deleted."

    node: str
    since: Instant


class EmptyNodeRemoved(CodeFacts, frozen=True):
    template = "{node} is empty and was not needed since {since:time}: new pods are kept away, and it is deleted."

    node: str
    since: Instant


class BatchCompleted(CodeFacts, frozen=True):
    template = "{node} is to be drained with {others} others, and its taint was not seen yet: it is asked for again."

    node: str
    others: int


class BatchSettles(CodeFacts, frozen=True):
    template = "{node} is to be drained with others: nothing is evicted until all are seen tainted."

    node: str


class BatchTorn(CodeFacts, frozen=True):
    template = "not all nodes of its batch could be tainted ({missing:|some were not seen}): {node} is given back."

    missing: tuple[str, ...]  # names of nodes: the first of those that are known
    node: str


class DrainMarkUnreadable(CodeFacts, frozen=True):
    template = "the taint {key} of {node} ({value}) is none that a drain puts on: it is taken off."

    key: str
    node: str
    value: str


class PodWaitsForAnother(CodeFacts, frozen=True):
    template = "{pod} waits, as {before} of the same owner goes first, and {old}, and so it keeps {node}."

    pod: Ref
    before: Ref
    old: Quiet  # what the pods were seen by
    node: str


class SuccessorUnseen(CodeFacts, frozen=True):
    template = (
        "{pod} waits: {before} of the same owner was evicted at {time:time}, nobody was seen to come after it yet, and "
        "{old}, and so it keeps {node}."
    )

    pod: Ref
    before: Ref
    time: Instant
    old: Quiet
    node: str


class PodEvicted(CodeFacts, frozen=True):
    template = "{pod} is moved off {node}: {home} has room for it."

    pod: Ref
    node: str
    home: str


class GangEvicted(CodeFacts, frozen=True):
    template = (
        "{node} is emptied, and with {pod} all {pods} pods of gang {gang} leave at once: there is room on {homes}."
    )

    node: str
    pod: Ref
    pods: int
    gang: str
    homes: tuple[str, ...]  # names of nodes


class GangRestEvicted(CodeFacts, frozen=True):
    template = (
        "others of gang {gang} have left already, without which the rest is of no use: {pod} is asked to leave {node}."
    )

    gang: str
    pod: Ref
    node: str


class PodToldToSave(CodeFacts, frozen=True):
    template = (
        "{pod} is moved off {node}, and is told to save its work first: it is evicted at {time:time}, or as soon as it "
        "says that it has."
    )

    pod: Ref
    node: str
    time: Instant
    seconds: int


class PodToldToSaveSooner(CodeFacts, frozen=True):
    template = (
        "{pod} is moved off {node}, and is told to save its work first: of {written} it has {seconds} s, the most that "
        "{policy} gives, until {time:time}, or until it says that it has."
    )

    pod: Ref
    node: str
    written: str  # the value of gpu.scheduling/checkpoint
    seconds: int
    policy: Ref
    time: Instant


class PodCheckpointUnreadable(CodeFacts, frozen=True):
    template = (
        "{pod} is moved off {node}, and carries gpu.scheduling/checkpoint: {written}, which is no duration such as "
        "120s: it has the {seconds} s that {policy} gives at most to save its work, until {time:time}."
    )

    pod: Ref
    node: str
    written: str
    seconds: int
    policy: Ref
    time: Instant


class PodSavesItsWork(CodeFacts, frozen=True):
    template = "{pod} on {node} saves its work: it is evicted at {time:time}, or as soon as it has."

    pod: Ref
    node: str
    time: Instant


class PodEvictedSaved(CodeFacts, frozen=True):
    template = "{pod} saved its work at {written}, and is moved off {node} to {home}."

    pod: Ref
    written: str  # the value of gpu.scheduling/checkpointed-at
    node: str
    home: str


class PodEvictedUnsaved(CodeFacts, frozen=True):
    template = "{pod} had {seconds} s to save its work and has not said that it did: it is moved off {node} to {home}."

    pod: Ref
    seconds: int
    node: str
    home: str


class EvictionCalledOff(CodeFacts, frozen=True):
    template = (
        "{pod} was told to save its work, and stays: {node} is not emptied any more. gpu.scheduling/evict-at comes off."
    )

    pod: Ref
    node: str


class PodWaitsItsTurn(CodeFacts, frozen=True):
    template = (
        "{pod} waits on {node} until {others:pod} that left before it are in their places: wherever those go, its own "
        "is kept."
    )

    pod: Ref
    node: str
    others: int


class DaemonPodEvicted(CodeFacts, frozen=True):
    template = "{pod} is asked to leave {node}, on which nothing else is left."

    pod: Ref
    node: str


class PodLeaves(CodeFacts, frozen=True):
    template = "{pods:pod} on {node} are on their way out."

    pods: int
    node: str


class EmptiedNodeWaits(CodeFacts, frozen=True):
    template = "{node} is empty: it is deleted at {time:time} if nothing comes."

    node: str
    time: Instant


class DrainedNodeDeleted(CodeFacts, frozen=True):
    template = "{node} has been empty for a minute: it is deleted."

    node: str


class GivenBack(CodeFacts, frozen=True):
    template = (
        "{node} could not be emptied in time, within {minutes} min of its last eviction: {why}. It is given back."
    )

    node: str
    minutes: int
    why: Reason


class DrainedNodeNeeded(CodeFacts, frozen=True):
    template = (
        "{node} was emptied, and {pool} lacks {lacks:node|a node} by now ({why}): its taint comes off, and it stays."
    )

    node: str
    pool: str
    lacks: int | None  # nodes; None: of the whole cluster
    why: Reason


# Why a node is given back, or is needed again.
class EvictedPodsStay(CodeFacts, frozen=True):
    template = "pods that were asked to leave are there still."


class BelowMinSize(CodeFacts, frozen=True):
    template = "minSize is {min_size}, and {staying:node} would stay."

    min_size: int
    staying: int


class PodsWaitForCapacity(CodeFacts, frozen=True):
    template = "pods wait for capacity."


class WarmNodesLacking(CodeFacts, frozen=True):
    template = "its warm nodes are not all there."


class EvictedPodWithoutPlace(CodeFacts, frozen=True):
    template = "{pod} was evicted lately and has no other place."

    pod: Ref


class BelowClusterMin(CodeFacts, frozen=True):
    template = "the cluster has {left} of {resource} without it, and clusterMin is {least}."

    left: str  # amounts as Kubernetes writes them
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

# With these a node begins to be emptied.
BEGINS: frozenset[type[Facts]] = frozenset({Drained, EmptyNodeRemoved})
