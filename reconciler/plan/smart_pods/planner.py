"""The smart pod planner: advances existing smart pods, creates new ones, opens nodes, and removes the gates of pods."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

import msgspec

from reconciler.model import names
from reconciler.model.instant import Instant, later
from reconciler.model.plan.capacity import CapacityReport, Purchase, Shortage
from reconciler.model.plan.decision import Decision, Delete, Hold, Preconditions, Reason, Ref, Taint, node_ref, pod_ref
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.capacity.offerings import digest_of
from reconciler.plan.capacity.refusals import PodWait
from reconciler.plan.capacity.requests import is_opening, request_by_name
from reconciler.plan.capacity.wanted_nodes import WantedNode
from reconciler.plan.containment import planning_for
from reconciler.plan.draft import Draft, Verdict
from reconciler.plan.smart_pods.advance import advance
from reconciler.plan.smart_pods.context import SmartPodContext
from reconciler.plan.smart_pods.gated_pods import lacking, request_nodes, requests_of
from reconciler.plan.smart_pods.lift_gates import (
    GatedPods,
    lifted,
    pod_holds,
    refused_pods,
    unmet_holds,
    unread_pods,
    waiting_pod_holds,
)
from reconciler.plan.smart_pods.purchases import purchases
from reconciler.plan.smart_pods.reasons import (
    PLANNER,
    NodeUsable,
    SmartPodOrphaned,
    SmartPodsUnread,
    SmartPodUnreadable,
)

# Kinds that must have been read to know which nodes are missing.
NEEDED = ("nodes", "pods", "nodeclaims.karpenter.sh", "nodepools.karpenter.sh")


def smart_pods(inputs: Inputs, draft: Draft) -> Verdict:
    """Decisions for each pool, then for waiting pods."""
    if unread := inputs.observed.unread_among(*NEEDED):
        pools = sorted({each.pool for each in draft.capacity.wanted if each.requestable != "never"})
        told_why = Reason(SmartPodsUnread(unread))
        holds = [Decision(PLANNER, Ref("GpuPool", "", pool), Hold(), told_why, pool) for pool in pools]
        return Verdict((*holds, *unread_pods(draft.capacity.waits, told_why)))
    decisions: list[Decision] = list(stray(inputs, draft))
    shortages: list[Shortage] = []
    wakes: list[Instant] = []
    requests: list[WantedNode] = []  # nodes of pools that can request
    contexts: list[SmartPodContext] = []
    bought: list[Purchase] = []
    spared: set[str] = set()  # uids of pods that wait for nodes of cancelled drains
    for pool in (each for each in inputs.desired.pools if each.name not in draft.left_out):
        with planning_for(pool.name):
            context = SmartPodContext(inputs, draft, pool)
            contexts.append(context)
            advanced = [advance(context, each) for each in context.requested]
            decisions += [each.decision for each in advanced if each.decision is not None]
            shortages += [each.shortage for each in advanced if each.shortage is not None]
            own = requests_of(context)
            made = request_nodes(context, own)
            decisions += [*made.decisions, *opened(context)]
            bought += [*purchases(context, advanced), *made.purchases]
            requests += own.nodes if context.has_node_pool else ()
            spared |= {pod.metadata.uid for each in own.spared for pod in each.pods}
            if context.requested:
                wakes.append(later(inputs.now, pool.spec.smart_pods.cleanup_interval.milliseconds))
    crowd = GatedPods.observe(draft, _not_open(inputs, draft))
    decisions += [*lifted(crowd, draft, inputs), *pod_holds(crowd, draft, requests)]
    decisions += [*refused_pods(contexts), *unmet_holds(contexts)]
    decided = {each.subject for each in (*decisions, *draft.claims)}
    decisions += waiting_pod_holds(_waits(draft, spared), decided)
    memory = msgspec.structs.replace(
        inputs.memory, shortages=_remembered(inputs, shortages), lacking=lacking(inputs, draft)
    )
    wakes += [each.until for each in memory.shortages]  # the holds about shortages end then
    wake_at = min(wakes, default=None)
    return Verdict(_once(decisions), memory=memory, wake_at=wake_at, reports=(CapacityReport(tuple(bought)),))


def _waits(draft: Draft, spared: AbstractSet[str]) -> Iterator[PodWait]:
    for each in draft.capacity.waits:
        is_spared = each.pod.metadata.uid in spared
        yield msgspec.structs.replace(each, waits_for="returned_node") if is_spared else each


def _not_open(inputs: Inputs, draft: Draft) -> frozenset[str]:
    """Nodes with a smart pod, or with the startup taint of reconciler."""
    there = {pod.node for pod in draft.requests.smart_pods if pod.node and not pod.is_finished}
    closed = {node.name for pool in inputs.desired.pools for node in draft.fleet.pool(pool.name).closed}
    return frozenset(there | closed)


def _remembered(inputs: Inputs, shortages: list[Shortage]) -> tuple[Shortage, ...]:
    """Shortages that still count."""
    requested = {pool.name: digest_of(pool.spec) for pool in inputs.desired.pools} if inputs.memory.shortages else {}
    kept = [
        each for each in inputs.memory.shortages if each.until > inputs.now and requested.get(each.pool) == each.asked
    ]
    new = {(each.pool, each.instance_type, each.capacity_type, each.zone): each for each in (*kept, *shortages)}
    return tuple(sorted(new.values()))


def _once(decisions: list[Decision]) -> tuple[Decision, ...]:
    """The first action on each subject; holds on the subject are kept."""
    acted: set[Ref] = set()
    found = []
    for each in decisions:
        if not isinstance(each.act, Hold):
            if each.subject in acted:
                continue
            acted.add(each.subject)
        found.append(each)
    return tuple(found)


# --- The startup taint gpu.scheduling/arriving, which is removed from a node when the node is usable.
#
# Karpenter writes all taints of a new node at once, and again while it has not observed its own write. So the taint may
# return to an opened node whose NodeClaim is Initialized by then. Decide from the taint, not from the condition.
#
# A node is opened one plan after the deletion of its smart pod was observed. Karpenter does not count an opened node
# for a smart pod: if the smart pod still waited, Karpenter would buy a second machine.


def opened(context: SmartPodContext) -> Iterator[Decision]:
    """Open usable nodes of the pool, whatever they were bought for: Karpenter adds the taint to all nodes of the
    NodePool.
    """
    awaited = _awaited(context)
    for facts in context.fleet.pool(context.pool.name).closed:
        node = facts.node
        taint = node.taint(names.ARRIVING)
        if taint is None or node.name in awaited or not is_opening(node, context.passing):
            continue
        subject = node_ref(node)
        why = Reason(NodeUsable(subject), context.pool.origin())
        presumes = Preconditions(resource_version=node.metadata.resource_version)
        labels = ((names.ARRIVED, "true"),)
        act = Taint(key=names.ARRIVING, value=None, effect=taint.effect, labels=labels, presumes=presumes)
        busy = context.draft.claimed_by(subject)
        yield Decision(PLANNER, subject, Hold() if busy else act, why, context.pool.name)


def _awaited(context: SmartPodContext) -> frozenset[str]:
    """Names of nodes whose smart pod the scheduler has not bound yet: Karpenter might buy another node for that smart
    pod.
    """
    waiting = (each for each in context.requested if not each.pod.node and not each.pod.metadata.leaving)
    return frozenset(each.node.name for each in waiting if each.node is not None and not each.pod.is_finished)


# --- Stray smart pods: of undeclared pools, or without a verified identity.


def stray(inputs: Inputs, draft: Draft) -> Iterator[Decision]:
    """Delete stray smart pods with reconciler's label from the namespaces of smart pods. Other pods are left alone."""
    declared = {pool.name for pool in inputs.desired.pools}
    for pod in draft.requests.smart_pods:
        labels = pod.metadata.labels
        pool = labels.get(names.POOL, "")
        if pod.metadata.leaving or labels.get(names.MANAGED) != "true":
            continue
        subject = pod_ref(pod)
        if pool not in declared and request_by_name(pod) is not None:
            yield Decision(PLANNER, subject, Delete(), Reason(SmartPodOrphaned(subject)), pool)
        elif draft.identity.request_of(pod) is None:
            yield Decision(PLANNER, subject, Delete(), Reason(SmartPodUnreadable(subject)), pool)
