"""Pods that were evicted lately, and which of them nobody has made anew yet.

A controller makes another pod for one that was evicted, and it takes a while until that is seen: until then room has to
be kept for a pod that nobody can see waiting. Of each owner at most as many pods are missing as it has fewer than it
wants. Of an owner that is not observed all are missing but as many as were made since the first eviction.
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

# Resources by which the successors of pods are seen.
OBSERVED_KINDS = (
    "pods",
    "poddisruptionbudgets.policy",
    "replicasets.apps",
    "statefulsets.apps",
    "jobs.batch",
    "replicationcontrollers",
)

_USUAL_SECONDS = 300  # where no policy says


def recent_seconds(policy: Declared[DrainPolicy] | None) -> int:
    """For how long an eviction counts."""
    return policy.spec.recent_eviction_seconds if policy is not None else _USUAL_SECONDS


def unreplaced(inputs: Inputs) -> list[tuple[Evicted, Pod]]:
    """Evicted lately, gone, and not made anew: each eviction, and what the pod asks of a node."""
    by_owner: defaultdict[str, list[Evicted]] = defaultdict(list)
    for each in recent(inputs):
        by_owner[each.owner].append(each)
    evicted_pods = by_owner.pop("", [])
    missing = _missing(inputs, by_owner)
    for owner, evicted in sorted(by_owner.items()):
        evicted_pods += evicted[: missing[owner]]
    return [(each, pod) for each in evicted_pods if (pod := _read(each)) is not None]


def _read(evicted: Evicted) -> Pod | None:
    """None where somebody edited the memory, and the pod can't be read any more."""
    try:
        return msgspec.json.decode(evicted.pod, type=Pod)
    except msgspec.DecodeError:
        return None


def recent(inputs: Inputs) -> list[Evicted]:
    """Those that count still: one that is there, and was not made to leave, was never evicted. What it asked for is
    forgotten once it was not recent any more, and a policy that was edited since doesn't bring it back."""
    evicted = [each for each in inputs.memory.drained.evicted if each.pod]
    if not evicted:
        return []
    policies = drain_policies(inputs.desired)
    lately = [each for each in evicted if inputs.now - each.at <= 1_000 * recent_seconds(policies.get(each.pool))]
    return gone(inputs.observed.pods, lately)


def gone(pods: Iterable[Pod], evicted: list[Evicted]) -> list[Evicted]:
    """Those that are on their way at least: others were only asked."""
    uids = {each.uid for each in evicted}
    staying = {
        pod.metadata.uid
        for pod in (pods if uids else ())
        if pod.metadata.uid in uids and not pod.metadata.leaving and not pod.is_finished
    }
    return [each for each in evicted if each.uid not in staying]


def owner_of(pod: Pod) -> str:
    """Namespace and uid of what made it; nothing where nothing did. Whoever makes a pod writes its owner references,
    and the API server does not look whether they are true: an owner counts only for pods of its own namespace."""
    owner = pod.metadata.controller
    return _owner(pod.metadata.namespace, owner.uid) if owner is not None and owner.uid else ""


def wanted_by(workloads: Iterable[Workload], owners: Collection[str]) -> dict[str, int]:
    """How many pods each shall have; those that are not observed are left out."""
    if not owners:
        return {}
    named = ((_owner(each.metadata.namespace, each.metadata.uid), each) for each in workloads)
    return {owner: _target(each) for owner, each in named if owner in owners}


def _owner(namespace: str, uid: str) -> str:
    return f"{namespace}/{uid}"


def _missing(inputs: Inputs, evicted: dict[str, list[Evicted]]) -> dict[str, int]:
    """How many pods each owner lacks of those that were evicted."""
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
    """Absent means one; of a Job, as many as run at once, and no more than are left to do."""
    spec = workload.spec
    if workload.kind != "Job":
        return 1 if spec.replicas is None else spec.replicas
    at_once = 1 if spec.parallelism is None else spec.parallelism
    return at_once if spec.completions is None else min(at_once, max(0, spec.completions - workload.status.succeeded))
