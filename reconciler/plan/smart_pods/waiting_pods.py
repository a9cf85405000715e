"""Pods without a place: each has a decision that says what the pod waits for."""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet

from reconciler.model import names
from reconciler.model.instant import timestamp
from reconciler.model.planned.action import Hold, Ref
from reconciler.model.planned.decision import Decision
from reconciler.model.planned.reason import Reason
from reconciler.plan.reasons import Because, counted
from reconciler.plan.requests.waiting import is_gated
from reconciler.plan.requests.waits import Waits, WaitsFor
from reconciler.plan.smart_pods import reasons

_OF: dict[WaitsFor, Because] = {
    "scheduler": reasons.SCHEDULER_PLACES,
    "ready_node": reasons.NODE_AWAITED,
    "kept_node": reasons.NODE_KEPT_FOR,
    "smart_pod": reasons.MACHINE_ASKED_FOR,
    "machine": reasons.MACHINE_COMES,
    "launch": reasons.MACHINE_LAUNCHES,
    "karpenter": reasons.LEFT_TO_KARPENTER,
    "request": reasons.NODE_ASKED_FOR,
    "returned_node": reasons.NODE_RETURNS,
    "retry": reasons.NEXT_ATTEMPT,
    "pool": reasons.POOL_BARRED,
    "capacity": reasons.NO_CAPACITY,
    "gang": reasons.GANG_UNSERVED,
    "gpu_pool": reasons.WITHOUT_GPUS,
    "claim": reasons.CLAIM_AWAITED,
    "other_gates": reasons.OTHER_GATES,
}


def told_of(waits: Iterable[Waits], decided: AbstractSet[Ref]) -> Iterator[Decision]:
    """A hold for each pod that nothing else was decided about."""
    for each in sorted(waits, key=lambda one: (one.pod.metadata.namespace, one.pod.name)):
        subject = _ref(each)
        if subject not in decided:
            yield Decision(reasons.PLANNER, subject, Hold(each.until), _reason(each), each.pool)


def unread_pods(waits: Iterable[Waits], why: Reason) -> Iterator[Decision]:
    """The same hold for each pod, while what smart pods need to know is not read."""
    for each in waits:
        yield Decision(reasons.PLANNER, _ref(each), Hold(), why, each.pool)


def _ref(waits: Waits) -> Ref:
    return Ref("Pod", waits.pod.metadata.namespace, waits.pod.name, waits.pod.metadata.uid)


def _reason(waits: Waits) -> Reason:
    because = reasons.WITHOUT_GPUS_GATED if waits.what == "gpu_pool" and is_gated(waits.pod) else _OF[waits.what]
    namespace = waits.pod.metadata.namespace
    facts = {
        "pod": f"Pod/{waits.pod.title}",
        "pool": waits.pool,
        "node": f"Node/{waits.name}",
        "smart": f"Pod/{waits.name}",
        "machine": f"NodeClaim/{waits.name}",
        "gang": waits.name,
        "claim": f"GpuClaim/{namespace}/{waits.name}",
        "why": waits.why or refusals_told(waits),
        "time": timestamp(waits.until) if waits.until is not None else "",
        "gates": ", ".join(each.name for each in waits.pod.spec.scheduling_gates if each.name != names.CAPACITY_GATE),
    }
    return because.reason(None, **{key: value for key, value in facts.items() if f"{{{key}}}" in because.template})


def refusals_told(waits: Waits) -> str:
    """Why each pool can't serve the pod."""
    told = [f"{pool}: {why}" for pool, why in waits.refusals]
    if waits.more:
        told.append(f"nor can {counted(waits.more, 'more pool')}")
    return "; ".join(told) or "no GpuPool is declared"
