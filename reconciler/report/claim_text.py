"""Sentences about GpuClaims: what their pods wait for, the change that would help, and the quality of their GPUs."""

from collections.abc import Callable, Mapping
from typing import Any

from reconciler.model.plan.decision import Decision, Ref
from reconciler.model.plan.plan import Plan
from reconciler.plan.capacity.refusals import ClaimUnusable
from reconciler.plan.capacity.words import claim_words, obstacle_words
from reconciler.plan.gpu.claim_report import (
    Allocation,
    AllocationScore,
    BindingBegun,
    ClaimChange,
    ClaimPod,
    ClaimUse,
    ClaimWait,
    GpusFree,
    GpusLacking,
    NodesAbsent,
    PoolsObserved,
    PoolWithGpusAbsent,
    WaitNotEvaluated,
    code_of,
)
from reconciler.report.sentences import sentence
from reconciler.report.wording import counted, listed


def _pools(pools: tuple[str, ...]) -> str:
    return listed([f"GpuPool/{each}" for each in pools])


def _absent(wait: PoolWithGpusAbsent) -> str:
    if wait.pool:
        return f"GpuPool/{wait.pool} does not exist, or does not have the requested GPUs"
    return "no GpuPool has the requested GPUs"


_WAITS: Mapping[type, Callable[[Any], str]] = {
    ClaimUnusable: claim_words,
    PoolWithGpusAbsent: _absent,
    PoolsObserved: lambda it: f"GPUs are not lent, because of suspend or mode Observe: {_pools(it.pools)}",
    NodesAbsent: lambda it: f"there is no ready node that stays: {_pools(it.pools)}",
    GpusLacking: lambda it: (
        f"of {counted(it.nodes, 'node')} none has the GPUs free; the nearest is Node/{it.node}: "
        f"{obstacle_words(it.obstacle)}"
    ),
    GpusFree: lambda it: (
        f"Node/{it.node} has the GPUs free: the scheduler has not placed the pod yet, or other requirements of the pod "
        "exclude the node"
    ),
    BindingBegun: lambda it: f"GPUs of Node/{it.node} are held for the pod, which is not bound yet",
    WaitNotEvaluated: lambda _: "too many claims wait: the claim was not evaluated in this plan",
}

# For counts: what pods wait for, by published reason.
REASON_WORDS: Mapping[str, str] = {
    "ClaimAbsent": "the claim does not exist",
    "ClaimSuspended": "the claim is suspended",
    "ClaimUnreadable": "the claim can't be read",
    "PoolWithGpusAbsent": "no pool has the requested GPUs",
    "PoolsObserved": "the pools are suspended or in mode Observe",
    "NodesAbsent": "the pools have no ready node",
    "GpusLacking": "no node has the GPUs free",
    "GpusFree": "a node has the GPUs free, and the pod is not placed",
    "BindingBegun": "the binding has begun",
    "WaitNotEvaluated": "not evaluated",
}


def wait_words(wait: ClaimWait) -> str:
    """As a clause: what a pod waits for."""
    return _WAITS[type(wait)](wait)


_CHANGES = {
    "policy": "with policy: {}",
    "model": "without model",
    "memory": "with memory: {}",
    "count": "with count: {}",
    "poolName": "without poolName",
    "suspend": "with suspend: {}",
}


def change_words(change: ClaimChange) -> str:
    """Such as with count: 2, a pod of the claim gets its GPUs on Node/a."""
    place = f"gets its GPUs on Node/{change.node}" if change.node else f"fits on a new node of GpuPool/{change.pool}"
    return f"{_CHANGES[change.field].format(change.value)}, a new pod of the claim {place}"


def bandwidth_words(score: AllocationScore, gpus: int) -> str:
    """Such as 600 GB/s at least between each two GPUs, one island."""
    if gpus < 2:
        return "a single GPU"
    island = "one island" if score.is_one_island else "several islands"
    if not score.is_bandwidth_known:
        return f"{island}, bandwidth unknown"
    best = f"; {score.best_gbps} GB/s is possible on such a node" if score.best_gbps > score.smallest_gbps else ""
    return f"{island}, at least {score.smallest_gbps} GB/s between two GPUs, {score.sum_gbps} GB/s in total{best}"


def allocation_words(allocation: Allocation) -> str:
    """Such as GPUs 0, 1 of Node/a (one island, at least 600 GB/s between two GPUs, 600 GB/s in total)."""
    gpus = len(allocation.devices)
    if allocation.is_by_kubelet:
        return f"{counted(gpus, 'GPU')} of Node/{allocation.node}, which the kubelet chooses"
    ids = ", ".join(map(str, allocation.devices))
    text = f"{'GPU' if gpus == 1 else 'GPUs'} {ids} of Node/{allocation.node}"
    return f"{text} ({bandwidth_words(allocation.score, gpus)})" if allocation.score is not None else text


def best_effort_words(use: ClaimUse) -> str:
    """Empty if the GPUs of one island can be guaranteed."""
    if not use.best_effort_in:
        return ""
    return f"one island is best effort, because the kubelet chooses the GPUs: {_pools(use.best_effort_in)}"


# --- Waiting pods: the plan's own decision about the pod says most.


def pod_decisions(plan: Plan) -> Mapping[Ref, Decision]:
    """The first decision about each pod."""
    found: dict[Ref, Decision] = {}
    for each in plan.decisions:
        if each.subject.kind == "Pod":
            found.setdefault(each.subject, each)
    return found


def wait_sentence(pod: ClaimPod, decisions: Mapping[Ref, Decision]) -> str:
    """Why the pod waits; empty if it does not wait."""
    if pod.wait is None:
        return ""
    decision = decisions.get(pod.pod)
    if decision is not None:
        return sentence(decision.reason)
    text = wait_words(pod.wait)
    return f"{text[0].upper()}{text[1:]}."


def reason_of(pod: ClaimPod) -> str:
    """The published reason of a waiting pod; empty if it does not wait."""
    return code_of(pod.wait) if pod.wait is not None else ""
