"""In-place resizes of elastic pods to their permits.

The permit of an agent is for the pod as a whole. The first container gets what the other containers leave of it, as
the API server resizes containers. cpu and memory can be resized, and no other resource. A pod whose agent is silent is
left alone: nobody knows yet what the agent may use.

A resize that the kubelet has deferred stays requested: the kubelet carries it out once there is room on the node. One
that the kubelet calls infeasible is requested again only when the permit changes.
"""

from collections.abc import Iterator, Mapping

from reconciler.fleet.amounts import CPU, MEMORY, pod_request
from reconciler.model.cluster.pod import Pod, PodSpec
from reconciler.model.plan.decision import Decision, Hold, Reason, Resize, pod_ref
from reconciler.model.plan.pressure import ElasticPod
from reconciler.plan.pressure.reasons import PLANNER
from reconciler.plan.pressure.resize_reasons import PermitBelowOthers, PodResized, ResizePending

_RESIZABLE = (CPU, MEMORY)
_PENDING = "PodResizePending"


def resizes(entries: Mapping[str, ElasticPod], pods: Mapping[str, Pod], pool: str) -> Iterator[Decision]:
    """Decisions for pods of a node that do not request what they are permitted. Entries and pods by uid."""
    for uid, entry in sorted(entries.items()):
        pod = pods.get(uid)
        if pod is not None and not entry.is_silent and not pod.metadata.leaving and pod.status.phase == "Running":
            yield from _of_pod(entry, pod, pool)


def _of_pod(entry: ElasticPod, pod: Pod, pool: str) -> Iterator[Decision]:
    wished, others = dict[str, int](), _others(pod)
    requested = pod_request(pod)
    for name in _RESIZABLE:
        permit = entry.permitted.get(name)
        if permit is None or permit == requested.get(name, 0):
            continue
        if permit <= others.get(name, 0):
            reason = PermitBelowOthers(pod_ref(pod), pod.node, name)
            yield Decision(PLANNER, pod_ref(pod), Hold(), Reason(reason), pool)
            return
        wished[name] = permit - others.get(name, 0)
    if wished:
        resources = tuple((name, _milli(name, amount)) for name, amount in sorted(wished.items()))
        act = Resize(resources=resources)
        yield Decision(PLANNER, pod_ref(pod), act, Reason(PodResized(pod_ref(pod), pod.node, resources)), pool)
    elif (why := _pending(pod)) is not None:
        yield Decision(PLANNER, pod_ref(pod), Hold(), Reason(ResizePending(pod_ref(pod), pod.node, why)), pool)


def _others(pod: Pod) -> Mapping[str, int]:
    """What all containers but the first request, and the overhead."""
    spec = PodSpec(overhead=pod.spec.overhead, containers=pod.spec.containers[1:])
    return pod_request(Pod(pod.metadata, spec))


def _pending(pod: Pod) -> str | None:
    """Why the kubelet has not resized the pod."""
    found = (each for each in pod.status.conditions if each.type == _PENDING and each.status == "True")
    return next((each.reason or "Pending" for each in found), None)


def _milli(name: str, amount: int) -> int:
    return amount if name == CPU else amount * 1_000
