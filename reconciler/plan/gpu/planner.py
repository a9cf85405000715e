"""The gpu planner: releases Leases of GPUs whose pods have ended, wakes waiting pods, reports the pods of each claim
and GPUs that pods use without a claim, and binds pods where no second scheduler runs.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from reconciler.model import names
from reconciler.model.cluster.pod import Pod
from reconciler.model.parsers import natural
from reconciler.model.plan.decision import (
    Annotate,
    Decision,
    Hold,
    Preconditions,
    Reason,
    Ref,
    pod_ref,
)
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.draft import Draft, Verdict
from reconciler.plan.gpu.binding import bind_pods
from reconciler.plan.gpu.claim_uses import NEEDED, report_claims
from reconciler.plan.gpu.device_leases import (
    HeldLease,
    LeaseCase,
    Releasing,
    decide_lease,
    held_leases,
    releasing_of,
)
from reconciler.plan.gpu.reasons import PLANNER, BindingGivenUp, GpusTakenWithoutClaim
from reconciler.plan.gpu.waking import Waking, wake


def gpu(inputs: Inputs, draft: Draft) -> Verdict:
    """Decisions about Leases, about nodes with freed GPUs, and about pools."""
    if inputs.observed.unread_among(*NEEDED) or inputs.observed.quiet_among(*NEEDED):
        return Verdict()  # a Lease lends its GPU until its pod is known to be gone
    views = list(held_leases(inputs.observed.leases))
    decisions = list(_of_leases(inputs, draft, views)) if views else []
    waking = Waking()
    if inputs.scheduler == "builtin":
        decisions += bind_pods(inputs, draft, {each.subject for each in decisions})
    else:
        waking = wake(inputs, draft, decisions)
        decisions += waking.decisions
    decisions += _without_claim(draft, inputs, {each.device.node for each in views})
    return Verdict(tuple(decisions), wake_at=waking.wake_at, reports=(report_claims(inputs, draft),))


def _of_leases(inputs: Inputs, draft: Draft, views: Sequence[HeldLease]) -> Iterator[Decision]:
    pods = {each.metadata.uid: each for each in inputs.observed.pods}
    left: defaultdict[str, list[LeaseCase]] = defaultdict(list)
    for view in views:
        case = LeaseCase(view, draft.fleet.node(view.device.node), pods.get(view.pod.uid), inputs.now)
        decision = decide_lease(case)
        if decision is not None:
            yield decision
        elif case.pod is not None and not case.pod.node:
            left[view.pod.uid].append(case)
    for uid, cases in left.items():
        yield _give_up(pods[uid], cases)


def _give_up(pod: Pod, cases: Sequence[LeaseCase]) -> Decision:
    """Annotate a pod that was not bound in time, with the latest version of its Leases on one node."""
    node = cases[0].view.device.node
    views = [each.view for each in cases if each.view.device.node == node]
    releasing = Releasing(node, max(natural(each.lease.metadata.resource_version) or 0 for each in views))
    since = min(each.made for each in views)
    presumes = Preconditions(resource_version=pod.metadata.resource_version)
    act: Annotate | Hold = Annotate(annotations=((names.RELEASING, str(releasing)),), presumes=presumes)
    if releasing_of(pod) == releasing:  # written, and the Leases have no version to compare
        act = Hold()
    found = cases[0].node
    pool = found.pool if found is not None else ""
    return Decision(PLANNER, pod_ref(pod), act, Reason(BindingGivenUp(pod_ref(pod), node, since)), pool)


def _without_claim(draft: Draft, inputs: Inputs, lending: set[str]) -> Iterator[Decision]:
    """Holds on pools with lent GPUs where other pods take GPUs without a claim."""
    for pool in inputs.desired.pools if lending else ():
        nodes = [each.name for each in draft.fleet.nodes_of(pool.name)]
        if lending.isdisjoint(nodes):
            continue
        pods = sorted(
            pod.title
            for name in nodes
            for pod in draft.fleet.pods_on(name)
            if pod.gpus and not pod.metadata.annotations.claim and not pod.is_finished
        )
        if pods:
            why = Reason(GpusTakenWithoutClaim(pool.name, len(pods), pods[0]), pool.origin())
            yield Decision(PLANNER, Ref("GpuPool", "", pool.name), Hold(), why, pool.name)
