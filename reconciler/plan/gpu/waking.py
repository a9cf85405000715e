"""Nodes that are annotated so that the scheduler looks at waiting pods again.

kube-scheduler tries an unschedulable pod again after an event that it knows. Leases, GpuClaims and GpuNodeStatuses are
none, so a pod could wait for minutes for a GPU that is free. An event of a node wakes every pod that the extender had
refused: the planner annotates a node whose GPUs are released in this plan, and a node that could serve a waiting pod.
The scheduler may have reasons of its own, so each further annotation for a pod comes later than the one before.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from reconciler.fleet.filters.claims import GpuClaims
from reconciler.fleet.first_fit import Search
from reconciler.fleet.questions import place
from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant, later, unix_seconds
from reconciler.model.plan.decision import Annotate, Decision, Delete, Reason, Ref, node_ref
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.capacity.demand import GpuClaimIndex, unschedulable_since
from reconciler.plan.draft import Draft
from reconciler.plan.gpu.reasons import PLANNER, FreedGpusAnnounced, LentGpu, WaitingPodWoken

PATIENCE_MS = 10_000  # the scheduler may be about to place the pod
_MOST_PODS = 200


class Waking(msgspec.Struct, frozen=True):
    """Annotations of nodes, and when the next one is due."""

    decisions: tuple[Decision, ...] = ()
    wake_at: Instant | None = None


def wake(inputs: Inputs, draft: Draft, released: Iterable[Decision]) -> Waking:
    """`released`: the decisions of this plan about Leases."""
    waiting = [each for each in draft.fleet.occupancy.waiting if _waits_for_gpus(each)]
    if not waiting:
        return Waking()
    freed = dict(_freed(released))
    decisions = [_annotated(draft, name, inputs.now, leases) for name, leases in freed.items()]
    due: list[Instant] = []
    for pod, node in _served(inputs, draft, waiting):
        since = unschedulable_since(pod)
        if since is None or node.name in freed:
            continue
        at = _next(node, since)
        if at > inputs.now:
            due.append(at)
            continue
        freed[node.name] = []
        decisions.append(_annotated(draft, node.name, inputs.now, (), pod))
    return Waking(tuple(each for each in decisions if each is not None), min(due, default=None))


def _waits_for_gpus(pod: Pod) -> bool:
    return bool(pod.metadata.annotations.claim) and pod.spec.scheduler_name == names.GPU_SCHEDULER


def _freed(released: Iterable[Decision]) -> Iterator[tuple[str, list[Ref]]]:
    """Nodes whose GPUs this plan releases, with the Leases."""
    by_node: dict[str, list[Ref]] = {}
    for each in released:
        if isinstance(each.act, Delete) and isinstance(each.reason.facts, LentGpu):
            by_node.setdefault(each.reason.facts.node, []).append(each.subject)
    yield from by_node.items()


def _served(inputs: Inputs, draft: Draft, waiting: Iterable[Pod]) -> Iterator[tuple[Pod, Node]]:
    """Unschedulable pods for which a node has room and GPUs now."""
    pods = [each for each in waiting if unschedulable_since(each) is not None][:_MOST_PODS]
    if not pods:
        return
    snapshot = draft.fleet.snapshot
    requests = GpuClaimIndex(inputs.observed, inputs.desired.pools).requests
    with snapshot.fork(), snapshot.part(GpuClaims).judged(requests):
        found: Mapping[str, str] = place(snapshot, pods, Search(budget=inputs.budget, tells_why=False)).destinations
    for pod in pods:
        node = draft.fleet.node(found.get(pod.metadata.uid, ""))
        if node is not None and pod.metadata.annotations.claim and _is_readable(requests.by_claim, pod):
            yield pod, node


def _is_readable(by_claim: Mapping[tuple[str, str], object], pod: Pod) -> bool:
    """Without a readable claim, no GPUs are lent."""
    return (pod.metadata.namespace, pod.metadata.annotations.claim) in by_claim


def _next(node: Node, since: Instant) -> Instant:
    """When the node is annotated for a pod that waits since then: the waiting time doubles."""
    last = unix_seconds(node.metadata.annotations.pods_woken_at)
    if last is None or last < since:
        return later(since, PATIENCE_MS)
    return later(last, max(PATIENCE_MS, last - since))


def _annotated(
    draft: Draft, name: str, now: Instant, after: Iterable[Ref] = (), pod: Pod | None = None
) -> Decision | None:
    node = draft.fleet.node(name)
    if node is None or node.metadata.leaving:
        return None
    act = Annotate(annotations=((names.PODS_WOKEN_AT, str(now // 1_000)),))
    why = Reason(FreedGpusAnnounced(name) if pod is None else WaitingPodWoken(name, pod.title))
    return Decision(PLANNER, node_ref(node), act, why, node.pool, after=tuple(after))
