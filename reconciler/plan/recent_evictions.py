"""Recently evicted pods whose successors do not exist yet.

The controller of an evicted pod creates another pod, but the new pod is observed only after a while. Until then,
room must be kept for a pod that is not in the cluster yet. The number of missing pods of an owner is at most the
number of pods that the owner lacks. If the owner is not observed, all its evicted pods are missing except as many as
were created since the first eviction.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable

import msgspec

from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.workload import Workload
from reconciler.model.desired import Declared
from reconciler.model.instant import moment
from reconciler.model.plan.drain_memory import Evicted
from reconciler.model.plan.inputs import Inputs
from reconciler.model.policy.scaling import DrainPolicy
from reconciler.plan.nodes.ownership import drain_policies

# Resources that show the successors of evicted pods.
OBSERVED_KINDS = (
    "pods",
    "poddisruptionbudgets.policy",
    "replicasets.apps",
    "statefulsets.apps",
    "jobs.batch",
    "replicationcontrollers",
)

_USUAL_SECONDS = 300  # if no policy says otherwise


def recent_seconds(policy: Declared[DrainPolicy] | None) -> int:
    """Seconds for which an eviction counts as recent."""
    return policy.spec.recent_eviction_seconds if policy is not None else _USUAL_SECONDS


def unreplaced(inputs: Inputs) -> list[tuple[Evicted, Pod]]:
    """Recent evictions whose pods are gone and not replaced, each with the evicted pod, whose requests need a node."""
    by_owner: defaultdict[str, list[Evicted]] = defaultdict(list)
    for each in recent(inputs):
        by_owner[each.owner].append(each)
    evicted_pods = by_owner.pop("", [])
    missing = _missing(inputs, by_owner)
    for owner, evicted in sorted(by_owner.items()):
        evicted_pods += evicted[: missing[owner]]
    return [(each, pod) for each in evicted_pods if (pod := _read(each)) is not None]


def _read(evicted: Evicted) -> Pod | None:
    """The evicted pod as stored; None if the stored pod can't be read, because somebody edited the memory."""
    try:
        return msgspec.json.decode(evicted.pod, type=Pod)
    except msgspec.DecodeError:
        return None


def recent(inputs: Inputs) -> list[Evicted]:
    """Evictions that still count. A pod that still exists and is not terminating was never evicted. The request of a
    pod is dropped once its eviction is not recent any more, and a later edit of the policy does not restore the
    request.
    """
    evicted = [each for each in inputs.memory.drained.evicted if each.pod]
    if not evicted:
        return []
    policies = drain_policies(inputs.desired)
    lately = [each for each in evicted if inputs.now - each.at <= 1_000 * recent_seconds(policies.get(each.pool))]
    return gone(inputs.observed.pods, lately)


def gone(pods: Iterable[Pod], evicted: list[Evicted]) -> list[Evicted]:
    """Evictions of pods that are gone or terminating. The other evictions were requested without effect."""
    uids = {each.uid for each in evicted}
    staying = {
        pod.metadata.uid
        for pod in (pods if uids else ())
        if pod.metadata.uid in uids and not pod.metadata.leaving and not pod.is_finished
    }
    return [each for each in evicted if each.uid not in staying]


def owner_of(pod: Pod) -> str:
    """Namespace and uid of the pod's controller; empty without a controller. Whoever creates a pod writes its owner
    references, and the API server does not verify them, so an owner counts only for pods of its own namespace.
    """
    owner = pod.metadata.controller
    return _owner(pod.metadata.namespace, owner.uid) if owner is not None and owner.uid else ""


def wanted_by(workloads: Iterable[Workload], owners: Collection[str]) -> dict[str, int]:
    """Number of pods that each owner should have, without owners that are not observed."""
    if not owners:
        return {}
    named = ((_owner(each.metadata.namespace, each.metadata.uid), each) for each in workloads)
    return {owner: _target(each) for owner, each in named if owner in owners}


def _owner(namespace: str, uid: str) -> str:
    return f"{namespace}/{uid}"


def _missing(inputs: Inputs, evicted: dict[str, list[Evicted]]) -> dict[str, int]:
    """Number of evicted pods that each owner still lacks."""
    if not evicted:
        return {}
    since = {
        owner: min(each.first for each in evicted_pods) // 1_000 * 1_000 for owner, evicted_pods in evicted.items()
    }
    have, newer = Counter[str](), Counter[str]()
    for pod in inputs.observed.pods:
        owner = owner_of(pod)
        if owner in evicted and not pod.metadata.leaving and not pod.is_finished:
            have[owner] += 1
            newer[owner] += (moment(pod.metadata.creation_timestamp) or 0) >= since[owner]
    wanted = wanted_by(inputs.observed.workloads, evicted.keys())
    unknown = {owner: len(evicted_pods) - newer[owner] for owner, evicted_pods in evicted.items()}
    return {owner: max(0, wanted[owner] - have[owner] if owner in wanted else unknown[owner]) for owner in evicted}


def _target(workload: Workload) -> int:
    """Wanted number of pods. An absent replica count means 1. A Job wants as many pods as may run in parallel, and at
    most as many as are left to complete.
    """
    spec = workload.spec
    if workload.kind != "Job":
        return 1 if spec.replicas is None else spec.replicas
    at_once = 1 if spec.parallelism is None else spec.parallelism
    return at_once if spec.completions is None else min(at_once, max(0, spec.completions - workload.status.succeeded))
