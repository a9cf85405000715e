"""Reason codes for drain candidates: why a node is a candidate, what it waits for, and why no candidates are
evaluated.
"""

from reconciler.model.cluster.observed import Unread
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import CodeFacts, Facts, Reason, Ref
from reconciler.plan.drain.codes.words import Destinations, Floor


# Why no candidates are evaluated. Existing candidates then keep their state.
class DrainUnread(CodeFacts, frozen=True):
    template = (
        "{policy} drains no node, because {unread.kind} are unknown ({unread.why}). Candidates keep their timers."
    )

    policy: Ref
    unread: Unread


class LeavingPodWithoutPlace(CodeFacts, frozen=True):
    template = (
        "{pod}, which leaves {node}, fits on no node: until the pod has a node, {policy} evaluates no candidates, and "
        "candidates keep their timers."
    )

    pod: Ref
    node: str
    policy: Ref


class DrainCandidate(CodeFacts, frozen=True):
    template = (
        "{node} is unneeded: its pods fit on {destinations}. The drain can start when the node has been a candidate "
        "for {delay_seconds:minutes} min."
    )

    node: str
    destinations: Destinations
    delay_seconds: int


class UnreadyDrainCandidate(CodeFacts, frozen=True):
    template = (
        "{node} is not ready, and its pods fit on {destinations}. The drain can start when the node has been a "
        "candidate for {delay_seconds:minutes} min."
    )

    node: str
    destinations: Destinations
    delay_seconds: int


class DrainCandidateNext(CodeFacts, frozen=True):
    template = (
        "{node} is unneeded. One plan starts the timers of at most {most} nodes: this timer starts in a later plan."
    )

    node: str
    most: int
    candidacy: Reason  # reason with which the timer starts


class EmptyDrainCandidate(CodeFacts, frozen=True):
    template = (
        "{node} is empty, and no NodeProvisioner scales {pool}. The node can be removed when it has been a candidate "
        "for {delay_seconds:minutes} min."
    )

    node: str
    pool: str
    delay_seconds: int


class UnreadyEmptyDrainCandidate(CodeFacts, frozen=True):
    template = (
        "{node} is empty and not ready. The node can be removed when it has been a candidate for "
        "{delay_seconds:minutes} min."
    )

    node: str
    delay_seconds: int


class CompletingDrainCandidate(CodeFacts, frozen=True):
    template = (
        "{node} is unneeded. The drain can start after the completion of {pods:pod} on the node (first by name: "
        "{pod}), when the node has been a candidate for at least {delay_seconds:minutes} min."
    )

    node: str
    pods: int
    pod: Ref
    delay_seconds: int


class NoLongerCandidate(CodeFacts, frozen=True):
    template = "{node} is no longer a candidate: {why}."

    node: str
    why: Reason


class NoDrainPolicy(CodeFacts, frozen=True):
    template = "no active DrainPolicy names {pool}: {node} is not drained, and the taint {key} is removed."

    pool: str
    node: str
    key: str


class WindowClosed(CodeFacts, frozen=True):
    template = "the windows of {policy} are closed until {time:time|a window is added}: {node} is not drained."

    policy: Ref
    time: Instant | None  # None: no window ever opens
    node: str


class DrainedInVain(CodeFacts, frozen=True):
    template = (
        "at {at:time} a new node was bought for pods that drains moved off nodes of {pool} ({times:occurrence}): "
        "{node} is not drained before {time:time}."
    )

    at: Instant
    times: int
    pool: str
    node: str
    time: Instant


class DrainWouldBeInVain(CodeFacts, frozen=True):
    template = (
        "at {at:time} a new node was bought for pods that drains moved off nodes of {pool} ({times:occurrence}), and "
        "{pool} has {pods:pod} on {nodes:node} now: {node} is not drained until these numbers change."
    )

    at: Instant
    times: int
    pool: str
    pods: int
    nodes: int
    node: str


class DrainWaitsForCompletion(CodeFacts, frozen=True):
    template = "the drain of {node} waits for {pods:pod} to complete (first by name: {pod})."

    node: str
    pods: int
    pod: Ref


class DrainWaitsForDemand(CodeFacts, frozen=True):
    template = "{node} is not drained while pods wait for nodes of {pool}."

    pool: str
    node: str


class NoDrainSlot(CodeFacts, frozen=True):
    template = "the drain of {node} waits: {limit}."

    node: str
    limit: Reason


class Throttled(CodeFacts, frozen=True):
    template = (
        "{policy} drains {draining:node}, with {leaving:node} leaving in total: both limits are reached "
        "({most_drained} and {most_leaving}), and {waiting:node} must wait."
    )

    policy: Ref
    draining: int
    leaving: int
    most_drained: int
    most_leaving: int
    waiting: int


class AwaitsOthersOfGang(CodeFacts, frozen=True):
    template = "{node} is drained together with {other} because of a gang, and waits for {other}: {why}."

    node: str
    other: str
    why: Reason


class AwaitsBatch(CodeFacts, frozen=True):
    template = "the drain of {node} waits until the taint has been observed on all nodes of the previous batch."

    node: str


class PartlyEvaluated(CodeFacts, frozen=True):
    template = "{policy} did not evaluate {left} of {nodes} nodes in time: the next plan starts with {node}."

    nodes: int
    policy: Ref
    left: int
    node: str


# Limits that leave no slot for a candidate.
class ParallelismReached(CodeFacts, frozen=True):
    template = "{field} is {most}, with {leaving:node} leaving."

    field: str  # of a DrainPolicy
    most: int
    leaving: int


class LargestParallelismReached(CodeFacts, frozen=True):
    template = "the largest {field} is {most}, with {leaving:node} leaving."

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
    template = (
        "{provisioner} keeps {floor.nodes} of {size} nodes of {pool}, and {leaving} of them are already leaving "
        "({floor})."
    )

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

# Reasons for which a node is a candidate.
CANDIDATES: frozenset[type[Facts]] = frozenset(
    {DrainCandidate, UnreadyDrainCandidate, EmptyDrainCandidate, UnreadyEmptyDrainCandidate, CompletingDrainCandidate}
)
