"""Those who wait: their gate is lifted where a node has room for them, and they are told what is done for them."""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from reconciler.model import names
from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import timestamp
from reconciler.model.planned.action import Annotate, Hold, Presumes, Ref, Ungate
from reconciler.model.planned.decision import Decision
from reconciler.model.planned.reason import Reason
from reconciler.plan.draft import Draft, Missing
from reconciler.plan.reasons import counted
from reconciler.plan.requests.gangs import Gang, Gangs
from reconciler.plan.requests.waiting import is_gated
from reconciler.plan.requests.wanted import Unmet
from reconciler.plan.smart_pods import reasons

REFUSED = "none-to-be-had"


class Crowd(msgspec.Struct, frozen=True):
    """All that wait behind our gate, by uid. Nodes that are opened in this very plan, or emptied of smart pods, are not
    for them yet: a scheduler that has not seen it would find no place, and Karpenter would buy another node."""

    pods: Mapping[str, Pod]
    opening: frozenset[str]
    gangs: Gangs

    @classmethod
    def seen(cls, draft: Draft, opening: frozenset[str]) -> "Crowd":
        gated = (pod for pod in draft.fleet.occupancy.waiting if is_gated(pod))
        return cls({pod.metadata.uid: pod for pod in gated}, opening, draft.gangs)


def lifted(crowd: Crowd, draft: Draft) -> Iterator[Decision]:
    """Where a node that can be used has room; a gang all together, or not yet."""
    places = draft.answered.places
    lacking: dict[Gang, int] = {}
    for uid, pod in crowd.pods.items():
        gang = crowd.gangs.of(pod)
        if gang is not None and uid not in places:
            lacking[gang] = lacking.get(gang, 0) + 1
    for uid, pod in crowd.pods.items():
        node = places.get(uid)
        if node is None:
            continue
        gang = crowd.gangs.of(pod)
        if gang is not None and gang in lacking:
            missing = counted(lacking[gang], "pod")
            why = reasons.GANG_WAITS.reason(node=f"Node/{node}", pod=_title(pod), gang=gang[1], missing=missing)
            yield Decision(reasons.PLANNER, _ref(pod), Hold(), why, _pool(draft, node))
            continue
        if draft.takes_away(node):
            why = reasons.TAKEN_AWAY.reason(node=f"Node/{node}", pod=_title(pod))
            yield Decision(reasons.PLANNER, _ref(pod), Hold(), why, _pool(draft, node))
            continue
        if node in crowd.opening:
            why = reasons.OPENING.reason(node=f"Node/{node}", pod=_title(pod))
            yield Decision(reasons.PLANNER, _ref(pod), Hold(), why, _pool(draft, node))
            continue
        why = reasons.LIFTED.reason(node=f"Node/{node}", pod=_title(pod))
        presumes = Presumes(resource_version=pod.metadata.resource_version)
        act = Ungate(gate=names.CAPACITY_GATE, node=node, presumes=presumes)
        yield Decision(reasons.PLANNER, _ref(pod), act, why, _pool(draft, node))


def told(crowd: Crowd, draft: Draft, missing: Iterable[Missing]) -> Iterator[Decision]:
    """Each once, on itself: that a machine was asked for, or that none can be had. `missing`: of pools that can ask."""
    waiting = {pod.metadata.uid: pod for pod in draft.fleet.occupancy.waiting}
    asked = dict(draft.answered.asked)
    for lacking in missing:
        asked |= {pod.metadata.uid: lacking.pool for each in lacking.wanted if not each.is_seen for pod in each.pods}
    for uid, pool in sorted(asked.items()):
        pod = crowd.pods.get(uid) or waiting.get(uid)
        if pod is not None and pod.metadata.annotations.waits_for != pool:
            yield _annotated(pod, pool, pool, reasons.TRIGGERED.reason(pool=pool))
    for unmet in draft.answered.unmet:
        for pod in unmet.pods:
            if unmet.outlook.is_exhausted and pod.metadata.annotations.waits_for != f"{unmet.pool}.{REFUSED}":
                yield _annotated(pod, f"{unmet.pool}.{REFUSED}", unmet.pool, _refused(unmet))


def unmet_holds(draft: Draft) -> Iterator[Decision]:
    """Of pools in which something is wanted, and nothing asked for now: why, and until when."""
    for unmet in draft.answered.unmet:
        outlook, subject = unmet.outlook, Ref("GpuPool", "", unmet.pool)
        if outlook.is_exhausted:
            yield Decision(reasons.PLANNER, subject, Hold(outlook.forgotten_at), _refused(unmet), unmet.pool)
        elif outlook.again_at is not None:
            time = timestamp(outlook.again_at)
            why = reasons.AGAIN.reason(pool=unmet.pool, tried=outlook.told, time=time)
            yield Decision(reasons.PLANNER, subject, Hold(outlook.again_at), why, unmet.pool)


def _refused(unmet: Unmet) -> Reason:
    at = unmet.outlook.forgotten_at
    time = timestamp(at) if at is not None else "no time"
    if unmet.outlook.is_limited:
        most = unmet.outlook.most - 1
        return reasons.REFUSED_BY_LIMIT.reason(pool=unmet.pool, tried=unmet.outlook.told, time=time, most=most)
    return reasons.REFUSED.reason(pool=unmet.pool, tried=unmet.outlook.told, time=time)


def _annotated(pod: Pod, value: str, pool: str, why: Reason) -> Decision:
    presumes = Presumes(resource_version=pod.metadata.resource_version)
    act = Annotate(annotations=((names.WAITS_FOR, value),), presumes=presumes)
    return Decision(reasons.PLANNER, _ref(pod), act, why, pool)


def _pool(draft: Draft, node: str) -> str:
    found = draft.fleet.node(node)
    return found.pool if found is not None else ""


def _ref(pod: Pod) -> Ref:
    return Ref("Pod", pod.metadata.namespace, pod.name, pod.metadata.uid)


def _title(pod: Pod) -> str:
    return f"Pod/{pod.title}"
