"""Capacity that Karpenter can't see by itself is asked for by smart pods: what becomes of those there are, which are to
be made, which nodes are opened, and whose gates are lifted."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

import msgspec

from reconciler.model.instant import Instant, later
from reconciler.model.plan.action import Hold, Ref
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.purchase import Purchase
from reconciler.model.plan.reason import Reason
from reconciler.model.plan.shortage import Shortage
from reconciler.plan.capacity.offerings import digest_of
from reconciler.plan.capacity.wait_times import PodWait
from reconciler.plan.containment import planning_for
from reconciler.plan.draft import Draft, UnmetNodes, Verdict
from reconciler.plan.smart_pods.advance import advance
from reconciler.plan.smart_pods.context import SmartPodContext
from reconciler.plan.smart_pods.gated_pods import asking, lacking
from reconciler.plan.smart_pods.lift_gates import GatedPods, lifted, pod_holds, unmet_holds
from reconciler.plan.smart_pods.open_nodes import opened
from reconciler.plan.smart_pods.purchases import purchases
from reconciler.plan.smart_pods.reasons import PLANNER, SmartPodsUnread
from reconciler.plan.smart_pods.returned_nodes import wanting
from reconciler.plan.smart_pods.stray import stray
from reconciler.plan.smart_pods.waiting_pods import unread_pods, waiting_pod_holds

# To judge what is missing, all of these must have been read.
NEEDED = ("nodes", "pods", "nodeclaims.karpenter.sh", "nodepools.karpenter.sh")


def smart_pods(inputs: Inputs, draft: Draft) -> Verdict:
    """Each pool in its turn, then those who wait."""
    if unread := inputs.observed.unread_among(*NEEDED):
        pools = sorted({each.pool for each in draft.missing})
        told_why = Reason(SmartPodsUnread(unread))
        holds = [Decision(PLANNER, Ref("GpuPool", "", pool), Hold(), told_why, pool) for pool in pools]
        return Verdict((*holds, *unread_pods(draft.answered.waits, told_why)))
    decisions: list[Decision] = list(stray(inputs, draft))
    shortages: list[Shortage] = []
    wakes: list[Instant] = []
    unmet_nodeses: list[UnmetNodes] = []  # of pools that could ask
    bought: list[Purchase] = []
    spared: set[str] = set()  # uids of pods that wait for nodes which a drain gives back
    for pool in (each for each in inputs.desired.pools if each.name not in draft.left_out):
        with planning_for(pool.name):
            context = SmartPodContext(inputs, draft, pool)
            advanced = [advance(context, each) for each in context.requested]
            decisions += [each.decision for each in advanced if each.decision is not None]
            shortages += [each.shortage for each in advanced if each.shortage is not None]
            wanted = wanting(draft, pool.name, [each for each in draft.missing if each.pool == pool.name])
            gated_pod_demand = asking(context, wanted)
            decisions += [*gated_pod_demand.decisions, *opened(context)]
            bought += [*purchases(context, advanced), *gated_pod_demand.purchases]
            unmet_nodeses += wanted.missing if context.has_node_pool else ()
            spared |= {pod.metadata.uid for each in wanted.spared for pod in each.pods}
            if context.requested:
                wakes.append(later(inputs.now, pool.spec.smart_pods.cleanup_interval.milliseconds))
    crowd = GatedPods.observe(draft, _not_open(inputs, draft))
    decisions += [*lifted(crowd, draft, inputs), *pod_holds(crowd, draft, unmet_nodeses), *unmet_holds(draft)]
    decided = {each.subject for each in (*decisions, *draft.claims)}
    decisions += waiting_pod_holds(_waits(draft, spared), decided)
    memory = msgspec.structs.replace(
        inputs.memory, shortages=_remembered(inputs, shortages), lacking=lacking(inputs, draft)
    )
    wakes += [each.until for each in memory.shortages]  # what is told of them is over then
    wake_at = min(wakes, default=None)
    return Verdict(_once(decisions), memory=memory, wake_at=wake_at, purchases=tuple(bought))


def _waits(draft: Draft, spared: AbstractSet[str]) -> Iterator[PodWait]:
    for each in draft.answered.waits:
        is_spared = each.pod.metadata.uid in spared
        yield msgspec.structs.replace(each, waits_for="returned_node") if is_spared else each


def _not_open(inputs: Inputs, draft: Draft) -> frozenset[str]:
    """Nodes on which smart pods still are, or that are closed to other pods as yet."""
    there = {pod.node for pod in draft.requests.smart_pods if pod.node and not pod.is_finished}
    closed = {node.name for pool in inputs.desired.pools for node in draft.fleet.pool(pool.name).closed}
    return frozenset(there | closed)


def _remembered(inputs: Inputs, shortages: list[Shortage]) -> tuple[Shortage, ...]:
    """What could not be bought, for as long as it counts."""
    requested = {pool.name: digest_of(pool.spec) for pool in inputs.desired.pools} if inputs.memory.shortages else {}
    kept = [
        each for each in inputs.memory.shortages if each.until > inputs.now and requested.get(each.pool) == each.asked
    ]
    new = {(each.pool, each.instance_type, each.capacity_type, each.zone): each for each in (*kept, *shortages)}
    return tuple(sorted(new.values()))


def _once(decisions: list[Decision]) -> tuple[Decision, ...]:
    """One action a subject, the first; holds beside it say nothing more."""
    acted: set[Ref] = set()
    found = []
    for each in decisions:
        if not isinstance(each.act, Hold):
            if each.subject in acted:
                continue
            acted.add(each.subject)
        found.append(each)
    return tuple(found)
