"""Codes of the gpu planner."""

from reconciler.model.instant import Instant
from reconciler.model.plan.decision import CodeFacts, Ref

PLANNER = "gpu"


class LentGpu(CodeFacts, frozen=True):
    """Base of the codes about one lent GPU. Without a template, the class is no code."""

    pod: str  # namespace and name
    node: str
    device: int  # id of the GPU on the node


class LeaseOfGoneNode(LentGpu, frozen=True):
    template = "Node/{node} is gone: the Lease of GPU {device} for Pod/{pod} is deleted."


class LeaseOfEndedPod(LentGpu, frozen=True):
    template = "Pod/{pod} has ended: GPU {device} of Node/{node} is free again."


class LeaseOfGonePod(LentGpu, frozen=True):
    template = "Pod/{pod} is gone: GPU {device} of Node/{node} is free again."


class LeaseOfOtherNode(LentGpu, frozen=True):
    template = "Pod/{pod} runs on Node/{other}: GPU {device} of Node/{node} is free again."

    other: str


class LeaseNotUsed(LentGpu, frozen=True):
    template = "Pod/{pod} was bound with other GPUs of Node/{node}: GPU {device} is free again."


class LeaseOfSilentNode(LentGpu, frozen=True):
    template = "Node/{node} has not been ready since {since:time}: the Lease of GPU {device} for Pod/{pod} is deleted."

    since: Instant


class LeaseUnused(LentGpu, frozen=True):
    template = (
        "Pod/{pod} was not bound, and no earlier Binding can take effect any more: GPU {device} of Node/{node} is free "
        "again."
    )


class BindingAwaited(LentGpu, frozen=True):
    template = "GPU {device} of Node/{node} is held for Pod/{pod}, which is not bound yet, until {until:time}."

    until: Instant


class BindingGivenUp(CodeFacts, frozen=True):
    template = (
        "{pod} holds GPUs of Node/{node} since {since:time} and was not bound: the pod is annotated, so that no "
        "earlier Binding takes effect, and then the GPUs are released."
    )

    pod: Ref
    node: str
    since: Instant


class PodBound(CodeFacts, frozen=True):
    template = "The scheduler chose Node/{node} for {pod}: the pod is bound, together with its GPUs."

    pod: Ref
    node: str


class FreedGpusAnnounced(CodeFacts, frozen=True):
    template = "GPUs of Node/{node} are free again: the node is annotated, so that the scheduler looks at waiting pods."

    node: str


class WaitingPodWoken(CodeFacts, frozen=True):
    template = (
        "Node/{node} has GPUs for Pod/{pod}, which is unschedulable: the node is annotated, so that the scheduler "
        "looks at the pod again."
    )

    node: str
    pod: str


class GpusTakenWithoutClaim(CodeFacts, frozen=True):
    template = (
        "GpuPool/{pool} has GPUs that are lent to claims, and {pods:pod} without a claim (first by name: Pod/{first}): "
        "the GPUs of these pods count as used. Add the annotation gpu.scheduling/claim to the pods, or run the pods in "
        "another pool."
    )
    by_person = True

    pool: str
    pods: int
    first: str


class ClaimedGpusBound(CodeFacts, frozen=True):
    template = "{pod} is bound to Node/{node} with the GPUs {devices}."

    pod: Ref
    node: str
    devices: tuple[int, ...]  # ids of the GPUs on the node


class NoNodeForClaim(CodeFacts, frozen=True):
    template = "{pod} waits: none of {nodes} nodes has room for the pod and free GPUs for GpuClaim {claim}."

    pod: Ref
    claim: str
    nodes: int
