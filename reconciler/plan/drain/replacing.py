"""Who was evicted lately and has no successor yet: for these, room is kept, though nobody waits in their name.

A controller makes another pod for one that was evicted, and it takes a while until that is seen. Of each owner at most
so many are missing as it has pods fewer than it wants; of one that is not known, as many as were evicted.
"""

from collections import Counter, defaultdict

import msgspec

from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.workload import Workload
from reconciler.model.planned.drained import Evicted
from reconciler.plan.drain.site import Site

# Whether pods come after others is seen by these.
SEEN_BY = (
    "pods",
    "poddisruptionbudgets.policy",
    "replicasets.apps",
    "statefulsets.apps",
    "jobs.batch",
    "replicationcontrollers",
)

_USUAL_SECONDS = 120  # where no policy says


def lacking(site: Site) -> tuple[list[tuple[str, Pod]], list[Pod]]:
    """Pods that need a place since they were evicted, with the node they were on; and all others that wait."""
    waiting = site.fleet.what_if.waiting
    lately = recent(site)
    if not lately:
        return [], waiting
    by_owner: defaultdict[str, list[Evicted]] = defaultdict(list)
    for each in lately:
        by_owner[each.owner].append(each)
    without = by_owner.pop("", [])
    missing = _missing(site, by_owner.keys() | set())
    for owner, evicted in sorted(by_owner.items()):
        without += evicted[: min(len(evicted), missing.get(owner, len(evicted)))]
    found = [(each.node, pod) for each in without if (pod := _read(each)) is not None]
    coming = [pod for pod in waiting if owner_of(pod) in by_owner and not pod.spec.scheduling_gates]
    found += [(by_owner[owner_of(pod)][0].node, pod) for pod in coming]
    known = {pod.metadata.uid for pod in coming}
    return found, [pod for pod in waiting if pod.metadata.uid not in known]


def _read(evicted: Evicted) -> Pod | None:
    """None where somebody edited the memory, and the pod can't be read any more."""
    try:
        return msgspec.json.decode(evicted.pod, type=Pod)
    except msgspec.DecodeError:
        return None


def recent(site: Site) -> list[Evicted]:
    """Those that count still: one that is there, and was not made to leave, was never evicted. What it asked for is
    forgotten once it was not recent any more, and a policy that was edited since doesn't bring it back."""
    known = (each for each in site.memory.evicted if each.pod)
    return gone(site, [each for each in known if site.now - each.at <= 1_000 * recent_seconds(site, each.pool)])


def gone(site: Site, evicted: list[Evicted]) -> list[Evicted]:
    """Those that are on their way at least: others were only asked."""
    uids = {each.uid for each in evicted}
    staying = {
        pod.metadata.uid
        for pod in (site.inputs.observed.pods if uids else ())
        if pod.metadata.uid in uids and not pod.metadata.leaving and not pod.is_finished
    }
    return [each for each in evicted if each.uid not in staying]


def recent_seconds(site: Site, pool: str) -> int:
    """For how long an eviction counts."""
    policy = site.policy_of.get(pool)
    return policy.spec.recent_eviction_seconds if policy is not None else _USUAL_SECONDS


def owner_of(pod: Pod) -> str:
    """Uid of what made it; nothing where nothing did."""
    owner = pod.metadata.controller
    return owner.uid if owner is not None else ""


def _missing(site: Site, owners: set[str]) -> dict[str, int]:
    """How many pods each lacks; those that are not known are left out."""
    wanted = wanted_by(site, owners)
    have = Counter(
        owner
        for pod in site.inputs.observed.pods
        if (owner := owner_of(pod)) in wanted and not pod.metadata.leaving and not pod.is_finished
    )
    return {uid: max(0, count - have[uid]) for uid, count in wanted.items()}


def wanted_by(site: Site, owners: set[str]) -> dict[str, int]:
    """How many pods each shall have; those that are not known are left out."""
    return {each.metadata.uid: _target(each) for each in site.inputs.observed.workloads if each.metadata.uid in owners}


def _target(workload: Workload) -> int:
    """Absent means one; of a Job, as many as run at once, and no more than are left to do."""
    spec = workload.spec
    if workload.kind != "Job":
        return 1 if spec.replicas is None else spec.replicas
    at_once = 1 if spec.parallelism is None else spec.parallelism
    return at_once if spec.completions is None else min(at_once, max(0, spec.completions - workload.status.succeeded))
