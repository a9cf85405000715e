"""What is done for a provisioner, one kind of thing a plan: a table of steps, the first that has anything to do.

Before all: capacity that is missing is asked for, whatever else is done. Then marks come off nodes that are to stay;
else nodes go whose time has come, or pods are kept away from those whose time is near; else further nodes are marked.
While pods wait, while much of the pool is unready, and where it is frozen, only marks come off.

To ask for capacity is none of these steps: it writes nothing, and a pod that waits for a node must not wait for marks
to be put right as well. No other step can undo it, since none takes a node away while pods wait for one.
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
    pod_ref,
)
from reconciler.plan.draft import Draft, UnmetNodes
from reconciler.plan.guards.frozen import PoolSuspended
from reconciler.plan.guards.tally import ClusterMinShortage
from reconciler.plan.nodes.ownership import nobody_elses, opt_out, settles_at, untouchable
from reconciler.plan.scaling import marks
from reconciler.plan.scaling.demand.assignment import at_least
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
    """All that is decided; the actions among it are of one kind."""
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
    """Asks for what is missing: for pods, up to the smallest size, and to keep nodes warm."""
    demand, evaluated = context.demand, context.evaluated
    pods = tuple(pod_ref(each) for each in demand.for_new)
    for_pods = UnmetNodes(evaluated.pool, evaluated.provisioner, demand.new_nodes, "demand", pods, demand.wanted)
    spec, short = context.pool_view.wish.spec, context.short
    of, pool_view = (evaluated.pool, evaluated.provisioner), context.pool_view
    least = UnmetNodes(*of, short.min_size, "minSize", wanted=at_least(pool_view, short.min_size))
    warm = UnmetNodes(*of, short.warm, "warmNodes", wanted=at_least(pool_view, short.warm))
    asked: tuple[tuple[UnmetNodes, ForPods | SizedBy], ...] = (
        (for_pods, ForPods(len(pods))),
        (least, SizedBy("minSize", spec.min_size)),
        (warm, SizedBy("warmNodes", spec.warm_nodes)),
    )
    for missing, why in asked:
        if missing.nodes:
            by_field = f"spec.{why.field}" if isinstance(why, SizedBy) else ""
            origin = pool_view.wish.origin(by_field) if by_field else evaluated.reason.origin
            facts = CapacityMissing(context.ref, context.pool, missing.nodes, why)
            yield request_capacity(context.draft, missing, Reason(facts, origin))


def keep(context: PoolContext) -> list[Decision]:
    """Takes the mark off nodes that are in use or wanted, and off the last of those that are too many."""
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
    """Marked nodes that the cluster cannot do without, the last to go first. Other nodes may have gone since."""
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
    """A hold on the provisioner, and what it says of marked nodes."""

    decision: Decision
    cause: KeptWhile


def _held(context: PoolContext) -> Iterator[_RemovalHold]:
    """Why no node may be marked or deleted now, where one would be."""
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
    """Makes marks hard whose time is near, and gives back the machines whose time has come."""
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
    """Marks further empty nodes, in order; says which would go and are kept, and where there are not enough."""
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
    """Empty nodes of a pool that is too large, looked at in removal order."""

    free: list[Node]  # that may be marked
    settles: list[Instant]  # when others will have settled
    kept: list[Decision]  # why those stay that would go first
    lack: ClusterMinShortage | None = None  # what the cluster would lack without another


def _kept_surplus(context: PoolContext, choice: _Choice, marked: int) -> CodeFacts:
    sized, lack = (context.pool, context.size, context.surplus, context.size_why), choice.lack
    if lack is None:
        return SurplusInUse(*sized, marked)
    return SurplusKeptByClusterMin(*sized, marked, lack.resource, lack.left, lack.least, lack.policy)


def _choose(context: PoolContext, most: int) -> _Choice:
    """At most so many."""
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
    """The holds on empty nodes that a DrainPolicy removes, since they are not ready: as many fewer are marked."""
    for node in context.pool_view.order.sorted(context.pool_view.empty()):
        policy = context.pool_view.remover_of(node)
        if policy is not None and _excluded(context, node) is None:
            yield context.act(
                node, Hold(), context.why(EmptyNodeUnready(node.name, Ref("DrainPolicy", "", policy.name)))
            )


def _excluded(context: PoolContext, node: Node) -> Decision | None:
    """The hold on an empty node that somebody else has in hand, or that opts out of removal."""
    if (reason := untouchable(node)) is not None:
        return context.act(node, Hold(), reason)
    opted_out = opt_out(node, context.now)
    return context.act(node, Hold(opted_out.until), opted_out.reason) if opted_out is not None else None


def wait(context: PoolContext, held: Sequence[_RemovalHold]) -> Iterator[Decision]:
    """Marked nodes that wait for their time: why they go, and when they are looked at again; or why they do not."""
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


# In this order; each is asked only where those before had nothing to do.
STEPS: tuple[Step, ...] = (remove, mark)


# --- The one place where capacity is asked for and given back.
#
# Karpenter buys for the pods that it sees, and takes a machine back when its Node is deleted. For what no pod of its
# own accord asks for, the draft keeps what is missing, for a planner that asks in Karpenter's own way.


def request_capacity(draft: Draft, missing: UnmetNodes, why: Reason) -> Decision:
    """Left for whoever asks Karpenter, and told."""
    draft.missing.append(missing)
    return Decision(PLANNER, Ref("NodeProvisioner", "", missing.provisioner), Hold(), why, missing.pool)


def returned(node: Node, why: Reason) -> Decision:
    """The machine goes: that very node, as it was seen, and only if a most recent look finds no pod that counts."""
    presumes = Preconditions(resource_version=node.metadata.resource_version, empty=True)
    subject = node_ref(node)
    return Decision(PLANNER, subject, Delete(presumes=presumes), why, node.pool)
