"""Gates of waiting pods: a gate is removed when a node has room, and each waiting pod gets its state."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet

import msgspec

from reconciler.model import names
from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.decision import (
    Annotate,
    CodeFacts,
    Decision,
    Hold,
    Preconditions,
    Reason,
    Ref,
    Ungate,
    pod_ref,
)
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.capacity.demand import Gang, GangIndex, is_gated
from reconciler.plan.capacity.offerings import LaunchOptions
from reconciler.plan.capacity.refusals import PodWait, WaitsFor
from reconciler.plan.capacity.wanted_nodes import NodeWithRoom, WantedNode
from reconciler.plan.draft import Draft
from reconciler.plan.guards.observing import observes
from reconciler.plan.smart_pods.context import SmartPodContext
from reconciler.plan.smart_pods.reasons import (
    PLANNER,
    CapacityAttemptsSpent,
    CapacityRefused,
    CapacityRetried,
    CapacityThere,
    GangUnserved,
    GangWaits,
    GatedPodWithoutGpus,
    NodeKeptForPod,
    NodeOpens,
    PlaceTakenAway,
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
    ScalingTriggered,
    SchedulerPlacesPod,
)

REFUSED = "none-to-be-had"

KeptBy = type[PlaceTakenAway | NodeOpens]


class GatedPods(msgspec.Struct, frozen=True):
    """Pods behind the capacity gate, by uid. Nodes that this plan opens, or whose smart pod it deletes, do not count
    yet: a scheduler with an older state would find no node, and Karpenter would buy another one.
    """

    pods: Mapping[str, Pod]
    opening: frozenset[str]
    gangs: GangIndex

    @classmethod
    def observe(cls, draft: Draft, opening: frozenset[str]) -> "GatedPods":
        gated = (pod for pod in draft.fleet.occupancy.waiting if is_gated(pod))
        return cls({pod.metadata.uid: pod for pod in gated}, opening, draft.gangs)


class _Placed(msgspec.Struct, frozen=True):
    """A gated pod and the node with room for the pod."""

    pod: Pod
    place: NodeWithRoom
    kept_by: KeptBy | None  # why the gate can't be removed now
    is_reported: bool  # the pool is observed only


def lifted(crowd: GatedPods, draft: Draft, inputs: Inputs) -> Iterator[Decision]:
    """Decisions about gated pods with a usable node. The gates of a gang are removed together."""
    places = draft.capacity.places
    placed = {
        uid: _Placed(pod, places[uid], _kept_by(crowd, draft, places[uid].node), observes(inputs, places[uid].pool))
        for uid, pod in crowd.pods.items()
        if uid in places
    }
    lacking = _lacking(crowd, draft, placed)
    for each in placed.values():
        gang = crowd.gangs.of(each.pod)
        of = (pod_ref(each.pod), Ref("Node", "", each.place.node))
        act: Ungate | Hold = Hold()
        if each.kept_by is not None:
            facts: CodeFacts = each.kept_by(*of)
        elif gang is not None and (missing := lacking[each.is_reported][gang]):
            facts = GangWaits(*of, missing, gang[1])
        else:
            presumes = Preconditions(resource_version=each.pod.metadata.resource_version)
            act = Ungate(gate=names.CAPACITY_GATE, node=each.place.node, presumes=presumes)
            facts = CapacityThere(*of)
        yield Decision(PLANNER, pod_ref(each.pod), act, Reason(facts), each.place.pool)


def _kept_by(crowd: GatedPods, draft: Draft, node: str) -> KeptBy | None:
    if draft.takes_away(node):
        return PlaceTakenAway
    return NodeOpens if node in crowd.opening else None


def _lacking(crowd: GatedPods, draft: Draft, placed: Mapping[str, _Placed]) -> dict[bool, Counter[Gang]]:
    """Number of pods of each gang that can't start after this plan, for report-only decisions and for others. Pods of
    observed pools do not start, but if all pods of a gang are report-only, the gang counts as a whole.
    """
    result: dict[bool, Counter[Gang]] = {True: Counter(), False: Counter()}
    for pod in draft.fleet.occupancy.waiting:
        gang, uid = crowd.gangs.of(pod), pod.metadata.uid
        if gang is None or pod.metadata.leaving:
            continue
        each = placed.get(uid)
        stays = uid not in draft.capacity.schedulable if each is None else each.kept_by is not None
        result[True][gang] += stays
        result[False][gang] += stays or (each is not None and each.is_reported)
    return result


def pod_holds(crowd: GatedPods, draft: Draft, requests: Iterable[WantedNode]) -> Iterator[Decision]:
    """Annotations on waiting pods that a machine was requested. `requests`: nodes of pools that can request."""
    waiting = {pod.metadata.uid: pod for pod in draft.fleet.occupancy.waiting}
    requested = dict(draft.capacity.asked)
    requested |= {pod.metadata.uid: each.pool for each in requests if not each.is_visible for pod in each.pods}
    for uid, pool in sorted(requested.items()):
        pod = crowd.pods.get(uid) or waiting.get(uid)
        if pod is not None and pod.metadata.annotations.waits_for != pool:
            yield _annotated(pod, pool, pool, Reason(ScalingTriggered(pool)))


def refused_pods(contexts: Iterable[SmartPodContext]) -> Iterator[Decision]:
    """Annotations on waiting pods that no machine is available."""
    for context in contexts:
        pool, outlook = context.pool.name, context.outlook
        for pod in (pod for each in context.wanted("next_attempt") for pod in each.pods):
            if outlook.is_exhausted and pod.metadata.annotations.waits_for != f"{pool}.{REFUSED}":
                yield _annotated(pod, f"{pool}.{REFUSED}", pool, Reason(_refused(pool, outlook)))


def unmet_holds(contexts: Iterable[SmartPodContext]) -> Iterator[Decision]:
    """Holds on pools with wanted nodes that wait for the next attempt, with the reason and the end."""
    for context in contexts:
        pool, outlook = context.pool.name, context.outlook
        if not context.wanted("next_attempt"):
            continue
        if outlook.is_exhausted:
            yield context.hold(Reason(_refused(pool, outlook)), outlook.forgotten_at)
        elif outlook.again_at is not None:
            yield context.hold(Reason(CapacityRetried(pool, outlook.tried, outlook.again_at)), outlook.again_at)


def _refused(pool: str, outlook: LaunchOptions) -> CapacityAttemptsSpent | CapacityRefused:
    if outlook.is_limited:
        return CapacityAttemptsSpent(pool, outlook.most - 1, outlook.tried, outlook.forgotten_at)
    return CapacityRefused(pool, outlook.tried, outlook.forgotten_at)


def _annotated(pod: Pod, value: str, pool: str, why: Reason) -> Decision:
    presumes = Preconditions(resource_version=pod.metadata.resource_version)
    act = Annotate(annotations=((names.WAITS_FOR, value),), presumes=presumes)
    return Decision(PLANNER, pod_ref(pod), act, why, pool)


# --- Waiting pods: each has a decision that says what the pod waits for.


def waiting_pod_holds(waits: Iterable[PodWait], decided: AbstractSet[Ref]) -> Iterator[Decision]:
    """A hold for each pod without another decision."""
    for each in sorted(waits, key=lambda one: (one.pod.metadata.namespace, one.pod.name)):
        subject = _ref(each)
        if subject not in decided:
            yield Decision(PLANNER, subject, Hold(each.until), Reason(_facts(subject, each)), each.pool)


def unread_pods(waits: Iterable[PodWait], why: Reason) -> Iterator[Decision]:
    """The same hold for each pod, while kinds that smart pods need are unread."""
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
    """Facts about what the pod waits for."""
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
