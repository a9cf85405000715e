"""Pods without a place: each has a decision that says what the pod waits for."""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from reconciler.model import names
from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.action import Hold, Ref
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.reason import CodeFacts, Reason
from reconciler.model.plan.refs import pod_ref
from reconciler.plan.capacity.wait_times import PodWait, WaitsFor
from reconciler.plan.capacity.waiting import is_gated
from reconciler.plan.smart_pods.reasons import (
    PLANNER,
    GangUnserved,
    GatedPodWithoutGpus,
    NodeKeptForPod,
    PodAwaitsAttempt,
    PodAwaitsClaim,
    PodAwaitsKarpenter,
    PodAwaitsLaunch,
    PodAwaitsMachine,
    PodAwaitsNode,
    PodAwaitsOtherGates,
    PodAwaitsPool,
    PodAwaitsReadyNode,
    PodAwaitsReturnedNode,
    PodAwaitsSmartPod,
    PodUnserved,
    PodWithoutGpus,
    SchedulerPlacesPod,
)


def waiting_pod_holds(waits: Iterable[PodWait], decided: AbstractSet[Ref]) -> Iterator[Decision]:
    """A hold for each pod that nothing else was decided about."""
    for each in sorted(waits, key=lambda one: (one.pod.metadata.namespace, one.pod.name)):
        subject = _ref(each)
        if subject not in decided:
            yield Decision(PLANNER, subject, Hold(each.until), Reason(_facts(subject, each)), each.pool)


def unread_pods(waits: Iterable[PodWait], why: Reason) -> Iterator[Decision]:
    """The same hold for each pod, while what smart pods need to know is not read."""
    for each in waits:
        yield Decision(PLANNER, _ref(each), Hold(), why, each.pool)


def _ref(waits: PodWait) -> Ref:
    return pod_ref(waits.pod)


_OF_NODE: Mapping[WaitsFor, type[SchedulerPlacesPod | PodAwaitsReadyNode | NodeKeptForPod]] = {
    "scheduler": SchedulerPlacesPod,
    "ready_node": PodAwaitsReadyNode,
    "kept_node": NodeKeptForPod,
}
_OF_POOL: Mapping[WaitsFor, type[PodAwaitsLaunch | PodAwaitsKarpenter | PodAwaitsNode | PodAwaitsReturnedNode]] = {
    "launch": PodAwaitsLaunch,
    "karpenter": PodAwaitsKarpenter,
    "request": PodAwaitsNode,
    "returned_node": PodAwaitsReturnedNode,
}


_OF_MACHINE: Mapping[WaitsFor, type[PodAwaitsSmartPod | PodAwaitsMachine]] = {
    "smart_pod": PodAwaitsSmartPod,
    "machine": PodAwaitsMachine,
}


def _facts(pod: Ref, waits: PodWait) -> CodeFacts:
    """What the pod waits for."""
    if (of_node := _OF_NODE.get(waits.waits_for)) is not None:
        return of_node(pod, waits.awaited)
    if (of_machine := _OF_MACHINE.get(waits.waits_for)) is not None:
        return of_machine(pod, waits.pool, waits.awaited)
    if (of_pool := _OF_POOL.get(waits.waits_for)) is not None:
        return of_pool(pod, waits.pool)
    return _otherwise(pod, waits)


def _otherwise(pod: Ref, waits: PodWait) -> CodeFacts:
    match waits.waits_for:
        case "retry":
            return PodAwaitsAttempt(pod, waits.pool, waits.until)
        case "pool" if waits.bar is not None:
            return PodAwaitsPool(pod, waits.pool, waits.bar)
        case "claim" if waits.trouble is not None:
            return PodAwaitsClaim(pod, waits.awaited, waits.trouble)
        case "gang":
            return GangUnserved(pod, waits.gang)
        case "gpu_pool":
            return GatedPodWithoutGpus(pod) if is_gated(waits.pod) else PodWithoutGpus(pod)
        case "other_gates":
            return PodAwaitsOtherGates(pod, _other_gates(waits.pod))
        case _:
            return PodUnserved(pod, waits.refusals)


def _other_gates(pod: Pod) -> tuple[str, ...]:
    return tuple(each.name for each in pod.spec.scheduling_gates if each.name != names.CAPACITY_GATE)
