"""Of candidates for a drain: why a node is one, what it waits for, and why no candidates are looked for."""

from reconciler.model.cluster.observed import Unread
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import CodeFacts, Facts, Reason, Ref
from reconciler.plan.drain.codes.words import Destinations, Floor


# Why no candidates are looked for; then nothing changes for those there are.
class DrainUnread(CodeFacts, frozen=True):
    template = "{policy}: {unread}. No node is drained, and timers stand still."

    policy: Ref
    unread: Unread


class LeavingPodWithoutPlace(CodeFacts, frozen=True):
    template = (
        "{pod}, which leaves {node}, finds no place: {policy} names no candidates, and timers stand still until it has "
        "one."
    )

    pod: Ref
    node: str
    policy: Ref


class DrainCandidate(CodeFacts, frozen=True):
    template = "{node} is not needed: its pods would fit on {destinations}. It goes after {delay_seconds:minutes} min."

    node: str
    destinations: Destinations
    delay_seconds: int


class UnreadyDrainCandidate(CodeFacts, frozen=True):
    template = (
        "{node} is not ready, and its pods would fit on {destinations}. It goes after {delay_seconds:minutes} min."
    )

    node: str
    destinations: Destinations
    delay_seconds: int


class DrainCandidateNext(CodeFacts, frozen=True):
    template = (
        "{node} is not needed. One plan starts the timers of at most {most} nodes: its timer starts in a later plan."
    )

    node: str
    most: int
    candidacy: Reason  # with which its timer starts


class EmptyDrainCandidate(CodeFacts, frozen=True):
    template = "{node} is empty, and no NodeProvisioner scales {pool}. It goes after {delay_seconds:minutes} min."

    node: str
    pool: str
    delay_seconds: int


class UnreadyEmptyDrainCandidate(CodeFacts, frozen=True):
    template = "{node} is not ready, and is empty. It goes after {delay_seconds:minutes} min."

    node: str
    delay_seconds: int


class CompletingDrainCandidate(CodeFacts, frozen=True):
    template = (
        "{node} is not needed. It goes once {pods:pod} on it completed (first by name: {pod}), and not before "
        "{delay_seconds:minutes} min."
    )

    node: str
    pods: int
    pod: Ref
    delay_seconds: int


class NoLongerCandidate(CodeFacts, frozen=True):
    template = "{node} is no candidate any more: {why}."

    node: str
    why: Reason


class NoDrainPolicy(CodeFacts, frozen=True):
    template = (
        "no DrainPolicy that is not suspended names {pool}: {node} is not drained, and the taint {key} comes off."
    )

    pool: str
    node: str
    key: str


class WindowClosed(CodeFacts, frozen=True):
    template = "the windows of {policy} are closed until {time:time|for ever}: {node} is not drained before."

    policy: Ref
    time: Instant | None  # None: no window ever opens
    node: str


class DrainedInVain(CodeFacts, frozen=True):
    template = (
        "at {at:time}, for the {times}. time, a node came for pods that were moved off nodes of {pool}: {node} is not "
        "drained before {time:time}."
    )

    at: Instant
    times: int
    pool: str
    node: str
    time: Instant


class DrainWouldBeInVain(CodeFacts, frozen=True):
    template = (
        "at {at:time}, for the {times}. time, a node came for pods that were moved off nodes of {pool}, which has "
        "{pods:pod} on {nodes:node} now: {node} is not drained until that changes."
    )

    at: Instant
    times: int
    pool: str
    pods: int
    nodes: int
    node: str


class DrainWaitsForCompletion(CodeFacts, frozen=True):
    template = "{node} is to go, and waits for {pods:pod} to complete (first by name: {pod})."

    node: str
    pods: int
    pod: Ref


class DrainWaitsForDemand(CodeFacts, frozen=True):
    template = "pods wait for nodes of {pool}: {node} is not drained meanwhile."

    pool: str
    node: str


class NoDrainSlot(CodeFacts, frozen=True):
    template = "{node} is to go, and waits: {limit}."

    node: str
    limit: Reason


class Throttled(CodeFacts, frozen=True):
    template = (
        "{policy} drains {draining} nodes, and {leaving} leave in all: both limits are reached ({most_drained} and "
        "{most_leaving}), and {waiting} wait."
    )

    policy: Ref
    draining: int
    leaving: int
    most_drained: int
    most_leaving: int
    waiting: int


class AwaitsOthersOfGang(CodeFacts, frozen=True):
    template = "{node} is to go together with {other}, for the sake of a gang, and waits for it: {why}."

    node: str
    other: str
    why: Reason


class AwaitsBatch(CodeFacts, frozen=True):
    template = "{node} is to go, and waits until the nodes before it were all seen tainted."

    node: str


class PartlyEvaluated(CodeFacts, frozen=True):
    template = (
        "of {nodes} nodes that {policy} looks at, {left} were not evaluated in time: the next plan begins with {node}."
    )

    nodes: int
    policy: Ref
    left: int
    node: str


# The limits for which a candidate finds no slot.
class ParallelismReached(CodeFacts, frozen=True):
    template = "{field} is {most}, and {leaving} leave."

    field: str  # of a DrainPolicy
    most: int
    leaving: int


class LargestParallelismReached(CodeFacts, frozen=True):
    template = "the largest {field} is {most}, and {leaving} leave."

    field: str  # of all DrainPolicies
    most: int
    leaving: int


class PoolKeepsNodes(CodeFacts, frozen=True):
    template = "{provisioner} keeps {floor.nodes} of {size} nodes of {pool} ({floor})."

    provisioner: Ref
    size: int
    pool: str
    floor: Floor


class PoolKeepsNodesBesideLeaving(CodeFacts, frozen=True):
    template = "{provisioner} keeps {floor.nodes} of {size} nodes of {pool}, {leaving} of which leave anyway ({floor})."

    provisioner: Ref
    size: int
    pool: str
    leaving: int
    floor: Floor


class GuardAllowsPerPlan(CodeFacts, frozen=True):
    template = "{guard} allows {most} of {field} in one plan."

    guard: Ref
    most: int
    field: str  # of perPlan


CANDIDACY = (
    DrainUnread, LeavingPodWithoutPlace, DrainCandidate, UnreadyDrainCandidate, DrainCandidateNext,
    EmptyDrainCandidate, UnreadyEmptyDrainCandidate, CompletingDrainCandidate, NoLongerCandidate, NoDrainPolicy,
    WindowClosed, DrainedInVain, DrainWouldBeInVain, DrainWaitsForCompletion, DrainWaitsForDemand, NoDrainSlot,
    AwaitsOthersOfGang, Throttled, AwaitsBatch, PartlyEvaluated,
)  # fmt: skip
LIMITS = (
    ParallelismReached, LargestParallelismReached, PoolKeepsNodes, PoolKeepsNodesBesideLeaving, GuardAllowsPerPlan,
)  # fmt: skip

# Why a node is a candidate.
CANDIDATES: frozenset[type[Facts]] = frozenset(
    {DrainCandidate, UnreadyDrainCandidate, EmptyDrainCandidate, UnreadyEmptyDrainCandidate, CompletingDrainCandidate}
)
