"""Steps of one provisioner: a table in which the first step with any action decides, so that a plan has one kind of
action.

Missing capacity is always requested first. Then marks are removed from nodes that stay. If there are none, nodes
whose time has come are deleted, and marks of nodes whose time is near become hard. If there are none either, further
nodes are marked. While pods wait, while many nodes of the pool are unready, and while the pool is frozen, marks are
only removed.

Requests for capacity are not part of the table: they write nothing, and a pod that waits for a node must not wait
for marks too. No other step can undo a request, because no node is removed while pods wait for nodes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from reconciler.model.cluster.node import Node
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import (
    CodeFacts,
    Decision,
    Delete,
    Hold,
    Preconditions,
    Reason,
    Ref,
    Taint,
    node_ref,
)
from reconciler.plan.guards.frozen import PoolSuspended
from reconciler.plan.guards.tally import ClusterMinShortage
from reconciler.plan.nodes.ownership import nobody_elses, opt_out, settles_at, untouchable
from reconciler.plan.scaling import marks
from reconciler.plan.scaling.evaluate import PoolContext
from reconciler.plan.scaling.pool_view import Noted
from reconciler.plan.scaling.reasons import (
    PLANNER,
    CapacityMissing,
    DeletionNear,
    DeletionNearLate,
    EmptyNodeDeleted,
    EmptyNodeUnready,
    ForPods,
    HeldWhile,
    KeptWhile,
    MarkedNodeHeld,
    MarkedNodeInUse,
    MarkedNodeUnready,
    MarkedNodeWanted,
    MarkUnreadable,
    NeededForClusterMin,
    NextWindow,
    NodeJustCame,
    NoLongerSurplus,
    ScaleDownWindowClosed,
    ScalingUnread,
    SizedBy,
    SurplusEmptyNode,
    SurplusInUse,
    SurplusKeptByClusterMin,
    kept_while,
)
from reconciler.plan.sums import is_empty
from reconciler.plan.windows import closed

Step = Callable[[PoolContext], list[Decision]]


def reconcile(context: PoolContext) -> list[Decision]:
    """All decisions for the provisioner. Its actions are of one kind."""
    decisions = list(provide(context))
    if any(isinstance(each.reason.facts, ScalingUnread) for each in context.evaluated.limits):
        return decisions + [context.hold(each.reason) for each in context.evaluated.limits]
    held = list(_held(context))
    done = (
        keep(context)
        or [each.decision for each in held]
        or next((found for step in STEPS if (found := step(context))), [])
    )
    refs = {each.subject for each in done}
    waiting = (each for each in wait(context, held) if each.subject not in refs)
    return decisions + done + list(waiting)


def provide(context: PoolContext) -> Iterator[Decision]:
    """Holds that report missing capacity: for pods, to the bounds of the size, and to warmNodes. Karpenter buys nodes
    for visible pods, and the smart pod planner requests the other nodes (plan/capacity/wanted_nodes.py).
    """
    demand, short, wish = context.demand, context.short, context.pool_view.wish
    missing: tuple[tuple[int, ForPods | SizedBy], ...] = (
        (demand.new_nodes, ForPods(demand.for_new)),
        (short.lack.nodes, SizedBy(short.lack.field, short.lack.value)),
        (short.warm, SizedBy("warmNodes", wish.spec.warm_nodes)),
    )
    for nodes, why in missing:
        if nodes:
            origin = wish.origin(f"spec.{why.field}") if isinstance(why, SizedBy) else context.evaluated.reason.origin
            yield context.hold(Reason(CapacityMissing(context.ref, context.pool, nodes, why), origin))


def keep(context: PoolContext) -> list[Decision]:
    """Remove marks from nodes that are in use or wanted, and from marked nodes beyond the surplus, the last in removal
    order.
    """
    found = {each.node.name: (each, why) for each in context.pool_view.ours if (why := _why_kept(context, each))}
    left = [each for each in context.pool_view.ours if each.node.name not in found]
    too_many = len(left) - context.evaluated.surplus
    if too_many > 0:
        by_name = {each.node.name: each for each in left}
        order = context.pool_view.order.sorted(each.node for each in left)
        for node in order[-too_many:][::-1]:
            each = by_name[node.name]
            found[node.name] = each, context.why(_no_longer_surplus(context, each))
    found |= _kept_for_cluster(context, [each for each in left if each.node.name not in found], found)
    return [
        context.act(each.node, Taint(key=marks.KEY, value=None, effect=each.mark.effect), why)
        for each, why in found.values()
    ]


def _no_longer_surplus(context: PoolContext, noted: Noted) -> NoLongerSurplus:
    return NoLongerSurplus(
        noted.node.name,
        context.pool,
        context.size,
        context.surplus,
        context.size_why,
        noted.mark.time,
        len(context.pool_view.ours),
    )


def _kept_for_cluster(
    context: PoolContext, left: list[Noted], kept: Mapping[str, object]
) -> dict[str, tuple[Noted, Reason]]:
    """Marked nodes that the cluster needs for clusterMin, the last in removal order first. Other nodes may have been
    removed since they were marked.
    """
    floor, result = context.pool_view.cluster_min, dict[str, tuple[Noted, Reason]]()
    if not floor.is_limited:
        return result
    by_name = {each.node.name: each for each in context.pool_view.ours}
    for name in kept:
        floor.give(by_name[name].node)
    for node in context.pool_view.order.sorted(each.node for each in left)[::-1]:
        if lack := floor.why_kept(node):
            floor.give(node)
            noted = by_name[node.name]
            lacks = (lack.resource, lack.left, lack.least, lack.policy)
            result[node.name] = noted, context.why(NeededForClusterMin(node.name, noted.mark.time, *lacks))
    return result


def _why_kept(context: PoolContext, noted: Noted) -> Reason | None:
    name = noted.node.name
    if (opted_out := opt_out(noted.node, context.now)) is not None:
        return opted_out.reason
    if (policy := context.pool_view.remover_of(noted.node)) is not None:
        return context.why(MarkedNodeUnready(name, noted.mark.time, Ref("DrainPolicy", "", policy.name)))
    if noted.mark.at is None:
        return context.why(MarkUnreadable(name, noted.mark.value))
    if not is_empty(context.pool_view.context.fleet, noted.node):
        return context.why(MarkedNodeInUse(name, noted.mark.time))
    if name in context.wanted:
        return context.why(MarkedNodeWanted(name, noted.mark.time, context.wanted[name]))
    return None


class _RemovalHold(msgspec.Struct, frozen=True):
    """A hold on the provisioner, and the cause for its marked nodes."""

    decision: Decision
    cause: KeptWhile


def _held(context: PoolContext) -> Iterator[_RemovalHold]:
    """Why no node may be marked or deleted now; empty without surplus nodes."""
    if not context.evaluated.surplus:
        return
    pool = context.pool_view.pool
    for each in context.evaluated.limits:
        if (cause := kept_while(each.reason.facts)) is not None:
            yield _RemovalHold(context.hold(each.reason), cause)
    if pool.spec.suspend:
        suspended = Reason(PoolSuspended(object=context.ref, pool=pool.name), pool.origin("spec.suspend"))
        yield _RemovalHold(context.hold(suspended), KeptWhile.SUSPENDED)
    elif freeze := context.freezes.of_pool(pool.name):
        frozen = context.hold(Reason(freeze.facts(context.ref), context.pool_view.wish.origin()), freeze.until)
        yield _RemovalHold(frozen, KeptWhile.FROZEN)


def remove(context: PoolContext) -> list[Decision]:
    """Make marks hard whose time is near, and delete nodes whose time has come."""
    return [decision for each in context.pool_view.ours if (decision := _next_of(context, each)) is not None]


def _next_of(context: PoolContext, noted: Noted) -> Decision | None:
    at, node, now = noted.mark.at, noted.node, context.now
    if at is None or now < (at if noted.mark.is_hard else marks.hardens_at(at)):
        return None
    if not noted.mark.is_hard or marks.is_stale(noted.mark, now):
        moved, before = marks.time_of_hard_mark(at, now), noted.mark.effect
        value, presumes = marks.value_of(moved), nobody_elses(marks.KEY, node)
        act = Taint(key=marks.KEY, value=value, effect=marks.HARD, instead_of=before, presumes=presumes)
        if now - marks.hardens_at(at) > marks.PROMPT_MS:
            return context.act(node, act, context.why(DeletionNearLate(node.name, at, moved)))
        return context.act(node, act, context.why(DeletionNear(node.name, moved)))
    settles = settles_at(node, context.pool_view.claim_of(node), now)
    if settles is not None:
        return context.act(node, Hold(settles), context.why(NodeJustCame(node.name, at)))
    return returned(node, context.why(EmptyNodeDeleted(node.name, at)))


def _soft(node: Node, at: Instant) -> Taint:
    presumes = nobody_elses(marks.KEY, node)
    return Taint(key=marks.KEY, value=marks.value_of(at), effect=marks.SOFT, presumes=presumes)


def mark(context: PoolContext) -> list[Decision]:
    """Mark further empty nodes in removal order. Reports nodes that are excluded, and a lack of nodes to mark."""
    lacking = context.evaluated.surplus - len(context.pool_view.ours)
    unready = list(_unready(context))[: max(0, lacking)]
    lacking -= len(unready)
    if lacking <= 0:
        return unready
    if shut := closed(context.pool_view.wish.spec.windows, context.now):
        sized = (context.pool, context.size, context.surplus, context.size_why)
        facts = ScaleDownWindowClosed(context.ref, *sized, NextWindow(shut.until))
        return [*unready, context.hold(context.why(facts), shut.until)]
    choice = _choose(context, lacking)
    free = choice.free
    at = marks.time_of_new_mark(context.now, context.pool_view.wish.spec.scale_down_delay.milliseconds)
    decisions = [context.act(node, _soft(node, at), context.why(_surplus(context, node, at))) for node in free]
    decisions += [*unready, *choice.kept]
    if len(free) < lacking:
        marked = len(free) + len(context.pool_view.ours)
        decisions.append(
            context.hold(context.why(_kept_surplus(context, choice, marked)), min(choice.settles, default=None))
        )
    return decisions


def _surplus(context: PoolContext, node: Node, at: Instant) -> SurplusEmptyNode:
    return SurplusEmptyNode(node.name, context.pool, context.size, context.surplus, context.size_why, at)


class _Choice(msgspec.Struct):
    """Empty nodes of a pool that is too large, evaluated in removal order."""

    free: list[Node]  # nodes to mark
    settles: list[Instant]  # when other nodes will have settled
    kept: list[Decision]  # holds on excluded nodes that would be marked first
    lack: ClusterMinShortage | None = None  # resource that the cluster would lack without one more node


def _kept_surplus(context: PoolContext, choice: _Choice, marked: int) -> CodeFacts:
    sized, lack = (context.pool, context.size, context.surplus, context.size_why), choice.lack
    if lack is None:
        return SurplusInUse(*sized, marked)
    return SurplusKeptByClusterMin(*sized, marked, lack.resource, lack.left, lack.least, lack.policy)


def _choose(context: PoolContext, most: int) -> _Choice:
    """Choose at most `most` nodes."""
    pool_view, choice = context.pool_view, _Choice([], [], [])
    ready = (node for node in pool_view.empty() if pool_view.remover_of(node) is None or _excluded(context, node))
    order = pool_view.order.sorted(node for node in ready if node.name not in context.wanted)
    for place, node in enumerate(order):
        if len(choice.free) == most:
            break
        if (excluded := _excluded(context, node)) is not None:
            choice.kept += [excluded] if place < most else []
            continue
        if context.draft.claimed_by(node_ref(node)) or context.freezes.of_node(node.name):
            continue
        at = settles_at(node, pool_view.claim_of(node), context.now)
        if at is not None:
            choice.settles.append(at)
        elif lack := pool_view.cluster_min.why_not(node):
            choice.lack = choice.lack or lack
        else:
            pool_view.cluster_min.take(node)
            choice.free.append(node)
    return choice


def _unready(context: PoolContext) -> Iterator[Decision]:
    """Holds on empty unready nodes that a DrainPolicy removes. Each reduces the number of nodes to mark."""
    for node in context.pool_view.order.sorted(context.pool_view.empty()):
        policy = context.pool_view.remover_of(node)
        if policy is not None and _excluded(context, node) is None:
            yield context.act(
                node, Hold(), context.why(EmptyNodeUnready(node.name, Ref("DrainPolicy", "", policy.name)))
            )


def _excluded(context: PoolContext, node: Node) -> Decision | None:
    """Hold on an empty node that others handle, or that opts out of removal."""
    if (reason := untouchable(node)) is not None:
        return context.act(node, Hold(), reason)
    opted_out = opt_out(node, context.now)
    return context.act(node, Hold(opted_out.until), opted_out.reason) if opted_out is not None else None


def wait(context: PoolContext, held: Sequence[_RemovalHold]) -> Iterator[Decision]:
    """Holds on marked nodes that wait for their time, with the reason of their removal or of the hold."""
    for each in context.pool_view.ours:
        at = each.mark.at
        if at is None:
            continue
        until = at if each.mark.is_hard else marks.hardens_at(at)
        facts: CodeFacts = _surplus(context, each.node, at)
        if held or until <= context.now:
            causes = tuple(one.cause for one in held) or (KeptWhile.OTHERS,)
            facts = MarkedNodeHeld(each.node.name, at, HeldWhile(causes))
        yield context.act(each.node, Hold(until if until > context.now else None), context.why(facts))


# Each step runs only if the steps before have no action.
STEPS: tuple[Step, ...] = (remove, mark)


def returned(node: Node, why: Reason) -> Decision:
    """Delete the node exactly as observed, and only if a fresh read finds no workload pod on it. Karpenter terminates
    the machine when the Node is deleted.
    """
    presumes = Preconditions(resource_version=node.metadata.resource_version, empty=True)
    subject = node_ref(node)
    return Decision(PLANNER, subject, Delete(presumes=presumes), why, node.pool)
