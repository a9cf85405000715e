"""The drain planner: selects underutilized nodes, drains many at once, and deletes them when they are empty.

Running drains come first: orphaned taints are removed, the last batch is completed, and pods of draining nodes are
evicted. Then candidates are searched, timers start and end, and candidates whose timers have expired begin to drain
as one batch.
"""

from collections.abc import Iterable, Iterator, Set
from typing import TypeVar

import msgspec

from reconciler.model.cluster.observed import Unread
from reconciler.model.instant import Instant, later
from reconciler.model.plan.decision import Decision, Reason
from reconciler.model.plan.drain_memory import Begun, DrainMemory, Evicted, InVain, Moved, Setback
from reconciler.model.plan.evaluation import DrainEligibility, DrainReport
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.memory import Hints, Memory
from reconciler.plan.capacity.demand import HOLDS_MS, Gang
from reconciler.plan.draft import Draft, Verdict
from reconciler.plan.drain import timers
from reconciler.plan.drain.backoff import begun, moved, setback_until, unforgotten, with_more
from reconciler.plan.drain.batch import Began, Settling, begin, settle
from reconciler.plan.drain.blockers import held
from reconciler.plan.drain.candidates import EligibilityContext
from reconciler.plan.drain.codes.blockers import NotEvaluated, NotTried
from reconciler.plan.drain.codes.candidacy import DrainUnread, LeavingPodWithoutPlace, PartlyEvaluated
from reconciler.plan.drain.codes.emptying import BatchTorn
from reconciler.plan.drain.context import PATIENCE_MS, DrainContext, DrainNode, ref_of_policy
from reconciler.plan.drain.evictions import DrainEvictions
from reconciler.plan.drain.gang_placement import Members
from reconciler.plan.drain.graceful_eviction import called_off
from reconciler.plan.drain.node_eligibility import eligible
from reconciler.plan.drain.placement import Rehomed, StrandedPod
from reconciler.plan.drain.placement_search import rehome, tried
from reconciler.plan.drain.timers import left_behind
from reconciler.plan.recent_evictions import OBSERVED_KINDS, recent_seconds

# Kinds that must have been read to decide which pods may move, and where.
NEEDED = (
    *OBSERVED_KINDS,
    "nodes",
    "nodeclaims.karpenter.sh",
    "leases.coordination.k8s.io",
    "gpuclaims.gpu.scheduling",
    "persistentvolumeclaims",
    "persistentvolumes",
)

_OfPool = TypeVar("_OfPool", Begun, Evicted, Moved, InVain)

_NEXT_MS = 10_000  # after a plan without time for all nodes


def drain(inputs: Inputs, draft: Draft) -> Verdict:
    """Decisions for all DrainPolicies together, because their pods share the same room."""
    context = DrainContext(inputs, draft)
    if not context.policies:
        return Verdict(tuple(_stopped(context, frozenset())), memory=_memory(context, DrainMemory()))
    if unread := inputs.observed.unread_among(*NEEDED):
        return Verdict(tuple(_unread(context, unread)))
    eligibility = EligibilityContext(context)
    settling = settle(context)
    candidate_order = eligible(eligibility)
    members = Members(context)
    rehomed = rehome(context, candidate_order.order, members).rehomed
    emptying = DrainEvictions(context, rehomed, members)
    decisions = [*_stopped(context, members.on_their_way), *settling.decisions, *emptying.decide(settling.nodes)]
    refused = candidate_order.refused | rehomed.refused
    began = Began()
    if rehomed.homeless is not None:
        decisions += _homeless(context, rehomed.homeless)
        refused |= {each.name: _not_tried(each, rehomed.homeless) for each in candidate_order.order}
    else:
        began = begin(eligibility, rehomed, members, is_settling=settling.batch is not None)
        decisions += [*_timed(context, rehomed, refused, settling), *began.decisions, *_left_out(context, rehomed)]
        decisions += held(context, refused)
    drained = DrainMemory(
        batch=settling.batch,
        evicted=tuple(sorted(_kept(context, each) for each in context.memory.evicted if _counts_still(context, each))),
        emptied=tuple(sorted(emptying.emptied)),
        setbacks=_setbacks(context, settling),
        moved=moved(context),
        in_vain=tuple(eligibility.in_vain.values()),
        begin_at=rehomed.left_out[0] if rehomed.left_out else "",
    )
    drained = msgspec.structs.replace(drained, begun=_begun(context, drained, began))
    hints = Hints(rehomed.hints, tried(context, refused, rehomed))
    weighed = tuple(_weighed(context, refused, rehomed, hints))
    wakes = [*_wakes(context, rehomed, drained), *eligibility.wakes, *context.wakes, *emptying.wakes]
    wakes += [settling.wake_at] if settling.wake_at is not None else []
    wake_at = min((each for each in wakes if each > context.now), default=None)
    memory = _memory(context, drained)
    return Verdict(tuple(decisions), memory=memory, reports=(DrainReport(weighed),), hints=hints, wake_at=wake_at)


def _begun(context: DrainContext, drained: DrainMemory, began: Began) -> tuple[Begun, ...]:
    """Loads to remember. A node of a batch may have its taint before the taint was observed."""
    batch = context.memory.batch
    nodes = [context.by_name[name] for name, _ in batch.nodes if name in context.by_name] if batch is not None else []
    under_way = {each.pool for each in (*nodes, *context.draining.values())}
    under_way |= {each.pool for each in drained.evicted} | {each.pool for each in drained.moved}
    return begun(context, drained.in_vain, under_way, began.loads)


def _stopped(context: DrainContext, gangs: frozenset[Gang]) -> Iterator[Decision]:
    """Cleanup of drains that no policy continues. `gangs`: leaving gangs."""
    yield from left_behind(context)
    yield from called_off(context, gangs)


def _memory(context: DrainContext, drained: DrainMemory) -> Memory:
    """Memory with the new drain section. Pools that are left out keep their previous records."""
    left_out, before = context.draft.left_out, context.memory
    if left_out:
        names = {each.name for pool in left_out for each in context.fleet.nodes_of(pool)}
        drained = msgspec.structs.replace(
            drained,
            evicted=_with_left_out(left_out, drained.evicted, before.evicted),
            emptied=tuple(sorted({*drained.emptied, *(each for each in before.emptied if each.node in names)})),
            moved=_with_left_out(left_out, drained.moved, before.moved),
            in_vain=_with_left_out(left_out, drained.in_vain, before.in_vain),
            begun=_with_left_out(left_out, drained.begun, before.begun),
        )
    return msgspec.structs.replace(context.inputs.memory, drained=drained)


def _with_left_out(left_out: Set[str], found: Iterable[_OfPool], before: Iterable[_OfPool]) -> tuple[_OfPool, ...]:
    """New records of planned pools, and previous records of pools that are left out."""
    others = [each for each in found if each.pool not in left_out]
    return tuple(sorted(others + [each for each in before if each.pool in left_out]))


def _wakes(context: DrainContext, rehomed: Rehomed, drained: DrainMemory) -> Iterator[Instant]:
    """Times at which the plan must be made again, even if nothing changes."""
    yield from (setback_until(each) for each in drained.setbacks)
    if rehomed.left_out:
        yield later(context.now, _NEXT_MS)
    if rehomed.on_their_way:  # room is reserved for these pods until then
        yield from (
            later(each.at, 1_000 * recent_seconds(context.policy_of.get(each.pool)) + 1) for each in drained.evicted
        )


def _timed(context: DrainContext, rehomed: Rehomed, refused: dict[str, Reason], settling: Settling) -> list[Decision]:
    return [
        *timers.take_off(context, refused, settling.nodes),
        *timers.put_on(context, rehomed.together, settling.nodes),
    ]


def _unread(context: DrainContext, unread: Unread) -> Iterator[Decision]:
    for policy in context.policies:
        facts = DrainUnread(policy=ref_of_policy(policy), unread=unread)
        yield context.hold(policy, Reason(facts, policy.origin()))


def _homeless(context: DrainContext, homeless: StrandedPod) -> Iterator[Decision]:
    for policy in context.policies:
        facts = LeavingPodWithoutPlace(pod=homeless.pod, node=homeless.node, policy=ref_of_policy(policy))
        yield context.hold(policy, Reason(facts, policy.origin()))


def _not_tried(drain_node: DrainNode, homeless: StrandedPod) -> Reason:
    return drain_node.reason(NotTried(policy=drain_node.policy_ref, pod=homeless.pod, leaves=homeless.node))


def _left_out(context: DrainContext, rehomed: Rehomed) -> Iterator[Decision]:
    """Holds that report nodes without evaluation, for lack of time."""
    left = set(rehomed.left_out)
    for policy in context.policies if left else ():
        own = [each.name for each in context.drain_nodes if each.policy is policy]
        count = len(left.intersection(own))
        if count:
            facts = PartlyEvaluated(nodes=len(own), policy=ref_of_policy(policy), left=count, node=rehomed.left_out[0])
            yield context.hold(policy, Reason(facts, policy.origin("spec.simulationTimeBound")))


def _weighed(
    context: DrainContext, refused: dict[str, Reason], rehomed: Rehomed, hints: Hints
) -> Iterator[DrainEligibility]:
    for drain_node in context.drain_nodes:
        name, pool, policy = drain_node.name, drain_node.pool, drain_node.policy.name
        if name in rehomed.together:
            reason = timers.candidacy(context, drain_node, rehomed.together[name])
            yield DrainEligibility(
                name, pool, policy, reason, is_candidate=True, since=timers.since(context, drain_node)
            )
        else:
            reason = refused.get(name) or drain_node.reason(NotEvaluated(node=name))
            yield DrainEligibility(name, pool, policy, reason, tried=hints.tried.get(name))


def _counts_still(context: DrainContext, evicted: Evicted) -> bool:
    """Whether the record is still needed: the successor may be missing, or the record shows the last progress of a
    drain.
    """
    policy = context.policy_of.get(evicted.pool)
    grace_ms = 1_000 * policy.spec.max_graceful_termination_seconds if policy is not None else 0
    lasts_ms = max(1_000 * recent_seconds(context.policy_of.get(evicted.pool)), grace_ms + PATIENCE_MS)
    return context.now - evicted.at <= lasts_ms


def _kept(context: DrainContext, evicted: Evicted) -> Evicted:
    """The record, without request and destination once no room is reserved for the pod. Owner and time are kept,
    because they are short.
    """
    is_recent = context.now - evicted.at <= max(HOLDS_MS, 1_000 * recent_seconds(context.policy_of.get(evicted.pool)))
    return evicted if is_recent else msgspec.structs.replace(evicted, pod="", home="")


def _setbacks(context: DrainContext, settling: Settling) -> tuple[Setback, ...]:
    new = (Setback(name, uid, context.now, BatchTorn.__name__) for name, uid in settling.untainted)
    return with_more(unforgotten(context.memory.setbacks, context.fleet, context.now), new)
