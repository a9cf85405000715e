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
from reconciler.model.plan.action import Hold, Ref, Taint
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.reason import CodeFacts, Reason
from reconciler.model.plan.refs import node_ref, pod_ref
from reconciler.plan.draft import UnmetNodes
from reconciler.plan.guards.cluster_min import Lack
from reconciler.plan.guards.frozen import PoolSuspended
from reconciler.plan.nodes.initialization import settles_at
from reconciler.plan.nodes.ownership import nobody_elses, opt_out, untouchable
from reconciler.plan.scaling import capacity, marks
from reconciler.plan.scaling.demand.shortfall import at_least
from reconciler.plan.scaling.pool_view import Noted
from reconciler.plan.scaling.reasons import (
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
from reconciler.plan.scaling.turn import PoolContext
from reconciler.plan.sums.usage import is_empty
from reconciler.plan.windows import closed

Step = Callable[[PoolContext], list[Decision]]


def reconcile(turn: PoolContext) -> list[Decision]:
    """All that is decided; the actions among it are of one kind."""
    decisions = list(provide(turn))
    if any(isinstance(each.reason.facts, ScalingUnread) for each in turn.evaluated.limits):
        return decisions + [turn.hold(each.reason) for each in turn.evaluated.limits]
    held = list(_held(turn))
    done = (
        keep(turn) or [each.decision for each in held] or next((found for step in STEPS if (found := step(turn))), [])
    )
    told = {each.subject for each in done}
    waiting = (each for each in wait(turn, held) if each.subject not in told)
    return decisions + done + list(waiting)


def provide(turn: PoolContext) -> Iterator[Decision]:
    """Asks for what is missing: for pods, up to the smallest size, and to keep nodes warm."""
    demand, evaluated = turn.demand, turn.evaluated
    pods = tuple(pod_ref(each) for each in demand.for_new)
    for_pods = UnmetNodes(evaluated.pool, evaluated.provisioner, demand.new_nodes, "demand", pods, demand.wanted)
    spec, short = turn.ground.wish.spec, turn.short
    of, ground = (evaluated.pool, evaluated.provisioner), turn.ground
    least = UnmetNodes(*of, short.min_size, "minSize", wanted=at_least(ground, short.min_size))
    warm = UnmetNodes(*of, short.warm, "warmNodes", wanted=at_least(ground, short.warm))
    asked: tuple[tuple[UnmetNodes, ForPods | SizedBy], ...] = (
        (for_pods, ForPods(len(pods))),
        (least, SizedBy("minSize", spec.min_size)),
        (warm, SizedBy("warmNodes", spec.warm_nodes)),
    )
    for missing, why in asked:
        if missing.nodes:
            by_field = f"spec.{why.field}" if isinstance(why, SizedBy) else ""
            origin = ground.wish.origin(by_field) if by_field else evaluated.reason.origin
            facts = CapacityMissing(turn.ref, turn.pool, missing.nodes, why)
            yield capacity.asked(turn.draft, missing, Reason(facts, origin))


def keep(turn: PoolContext) -> list[Decision]:
    """Takes the mark off nodes that are in use or wanted, and off the last of those that are too many."""
    found = {each.node.name: (each, why) for each in turn.ground.ours if (why := _why_kept(turn, each))}
    left = [each for each in turn.ground.ours if each.node.name not in found]
    too_many = len(left) - turn.evaluated.surplus
    if too_many > 0:
        by_name = {each.node.name: each for each in left}
        order = turn.ground.order.sorted(each.node for each in left)
        for node in order[-too_many:][::-1]:
            each = by_name[node.name]
            found[node.name] = each, turn.why(_no_longer_surplus(turn, each))
    found |= _kept_for_cluster(turn, [each for each in left if each.node.name not in found], found)
    return [
        turn.act(each.node, Taint(key=marks.KEY, value=None, effect=each.mark.effect), why)
        for each, why in found.values()
    ]


def _no_longer_surplus(turn: PoolContext, noted: Noted) -> NoLongerSurplus:
    return NoLongerSurplus(
        noted.node.name, turn.pool, turn.size, turn.surplus, turn.size_why, noted.mark.time, len(turn.ground.ours)
    )


def _kept_for_cluster(
    turn: PoolContext, left: list[Noted], kept: Mapping[str, object]
) -> dict[str, tuple[Noted, Reason]]:
    """Marked nodes that the cluster cannot do without, the last to go first. Other nodes may have gone since."""
    floor, found = turn.ground.cluster_min, dict[str, tuple[Noted, Reason]]()
    if not floor.is_limited:
        return found
    by_name = {each.node.name: each for each in turn.ground.ours}
    for name in kept:
        floor.give(by_name[name].node)
    for node in turn.ground.order.sorted(each.node for each in left)[::-1]:
        if lack := floor.why_kept(node):
            floor.give(node)
            noted = by_name[node.name]
            lacks = (lack.resource, lack.left, lack.least, lack.policy)
            found[node.name] = noted, turn.why(NeededForClusterMin(node.name, noted.mark.time, *lacks))
    return found


def _why_kept(turn: PoolContext, noted: Noted) -> Reason | None:
    name = noted.node.name
    if (opted_out := opt_out(noted.node, turn.now)) is not None:
        return opted_out.reason
    if (policy := turn.ground.remover_of(noted.node)) is not None:
        return turn.why(MarkedNodeUnready(name, noted.mark.time, Ref("DrainPolicy", "", policy.name)))
    if noted.mark.at is None:
        return turn.why(MarkUnreadable(name, noted.mark.value))
    if not is_empty(turn.ground.site.fleet, noted.node):
        return turn.why(MarkedNodeInUse(name, noted.mark.time))
    if name in turn.wanted:
        return turn.why(MarkedNodeWanted(name, noted.mark.time, turn.wanted[name]))
    return None


class _Held(msgspec.Struct, frozen=True):
    """A hold on the provisioner, and what it says of marked nodes."""

    decision: Decision
    cause: KeptWhile


def _held(turn: PoolContext) -> Iterator[_Held]:
    """Why no node may be marked or deleted now, where one would be."""
    if not turn.evaluated.surplus:
        return
    pool = turn.ground.pool
    for each in turn.evaluated.limits:
        if (cause := kept_while(each.reason.facts)) is not None:
            yield _Held(turn.hold(each.reason), cause)
    if pool.spec.suspend:
        suspended = Reason(PoolSuspended(object=turn.ref, pool=pool.name), pool.origin("spec.suspend"))
        yield _Held(turn.hold(suspended), KeptWhile.SUSPENDED)
    elif freeze := turn.freezes.of_pool(pool.name):
        frozen = turn.hold(Reason(freeze.facts(turn.ref), turn.ground.wish.origin()), freeze.until)
        yield _Held(frozen, KeptWhile.FROZEN)


def remove(turn: PoolContext) -> list[Decision]:
    """Makes marks hard whose time is near, and gives back the machines whose time has come."""
    return [found for each in turn.ground.ours if (found := _next_of(turn, each)) is not None]


def _next_of(turn: PoolContext, noted: Noted) -> Decision | None:
    at, node, now = noted.mark.at, noted.node, turn.now
    if at is None or now < (at if noted.mark.is_hard else marks.hardens_at(at)):
        return None
    if not noted.mark.is_hard or marks.is_stale(noted.mark, now):
        moved, before = marks.time_of_hard_mark(at, now), noted.mark.effect
        value, presumes = marks.value_of(moved), nobody_elses(marks.KEY, node)
        act = Taint(key=marks.KEY, value=value, effect=marks.HARD, instead_of=before, presumes=presumes)
        if now - marks.hardens_at(at) > marks.PROMPT_MS:
            return turn.act(node, act, turn.why(DeletionNearLate(node.name, at, moved)))
        return turn.act(node, act, turn.why(DeletionNear(node.name, moved)))
    settles = settles_at(node, turn.ground.claim_of(node), now)
    if settles is not None:
        return turn.act(node, Hold(settles), turn.why(NodeJustCame(node.name, at)))
    return capacity.returned(node, turn.why(EmptyNodeDeleted(node.name, at)))


def _soft(node: Node, at: Instant) -> Taint:
    presumes = nobody_elses(marks.KEY, node)
    return Taint(key=marks.KEY, value=marks.value_of(at), effect=marks.SOFT, presumes=presumes)


def mark(turn: PoolContext) -> list[Decision]:
    """Marks further empty nodes, in order; says which would go and are kept, and where there are not enough."""
    lacking = turn.evaluated.surplus - len(turn.ground.ours)
    unready = list(_unready(turn))[: max(0, lacking)]
    lacking -= len(unready)
    if lacking <= 0:
        return unready
    if shut := closed(turn.ground.wish.spec.windows, turn.now):
        sized = (turn.pool, turn.size, turn.surplus, turn.size_why)
        facts = ScaleDownWindowClosed(turn.ref, *sized, NextWindow(shut.until))
        return [*unready, turn.hold(turn.why(facts), shut.until)]
    choice = _choose(turn, lacking)
    free = choice.free
    at = marks.time_of_new_mark(turn.now, turn.ground.wish.spec.scale_down_delay.milliseconds)
    found = [turn.act(node, _soft(node, at), turn.why(_surplus(turn, node, at))) for node in free]
    found += [*unready, *choice.kept]
    if len(free) < lacking:
        marked = len(free) + len(turn.ground.ours)
        found.append(turn.hold(turn.why(_kept_surplus(turn, choice, marked)), min(choice.settles, default=None)))
    return found


def _surplus(turn: PoolContext, node: Node, at: Instant) -> SurplusEmptyNode:
    return SurplusEmptyNode(node.name, turn.pool, turn.size, turn.surplus, turn.size_why, at)


class _Choice(msgspec.Struct):
    """Empty nodes of a pool that is too large, looked at in removal order."""

    free: list[Node]  # that may be marked
    settles: list[Instant]  # when others will have settled
    kept: list[Decision]  # why those stay that would go first
    lack: Lack | None = None  # what the cluster would lack without another


def _kept_surplus(turn: PoolContext, choice: _Choice, marked: int) -> CodeFacts:
    sized, lack = (turn.pool, turn.size, turn.surplus, turn.size_why), choice.lack
    if lack is None:
        return SurplusInUse(*sized, marked)
    return SurplusKeptByClusterMin(*sized, marked, lack.resource, lack.left, lack.least, lack.policy)


def _choose(turn: PoolContext, most: int) -> _Choice:
    """At most so many."""
    ground, choice = turn.ground, _Choice([], [], [])
    ready = (node for node in ground.empty() if ground.remover_of(node) is None or _excluded(turn, node))
    order = ground.order.sorted(node for node in ready if node.name not in turn.wanted)
    for place, node in enumerate(order):
        if len(choice.free) == most:
            break
        if (excluded := _excluded(turn, node)) is not None:
            choice.kept += [excluded] if place < most else []
            continue
        if turn.draft.claimed_by(node_ref(node)) or turn.freezes.of_node(node.name):
            continue
        at = settles_at(node, ground.claim_of(node), turn.now)
        if at is not None:
            choice.settles.append(at)
        elif lack := ground.cluster_min.why_not(node):
            choice.lack = choice.lack or lack
        else:
            ground.cluster_min.take(node)
            choice.free.append(node)
    return choice


def _unready(turn: PoolContext) -> Iterator[Decision]:
    """The holds on empty nodes that a DrainPolicy removes, since they are not ready: as many fewer are marked."""
    for node in turn.ground.order.sorted(turn.ground.empty()):
        policy = turn.ground.remover_of(node)
        if policy is not None and _excluded(turn, node) is None:
            yield turn.act(node, Hold(), turn.why(EmptyNodeUnready(node.name, Ref("DrainPolicy", "", policy.name))))


def _excluded(turn: PoolContext, node: Node) -> Decision | None:
    """The hold on an empty node that somebody else has in hand, or that opts out of removal."""
    if (reason := untouchable(node)) is not None:
        return turn.act(node, Hold(), reason)
    opted_out = opt_out(node, turn.now)
    return turn.act(node, Hold(opted_out.until), opted_out.reason) if opted_out is not None else None


def wait(turn: PoolContext, held: Sequence[_Held]) -> Iterator[Decision]:
    """Marked nodes that wait for their time: why they go, and when they are looked at again; or why they do not."""
    for each in turn.ground.ours:
        at = each.mark.at
        if at is None:
            continue
        until = at if each.mark.is_hard else marks.hardens_at(at)
        facts: CodeFacts = _surplus(turn, each.node, at)
        if held or until <= turn.now:
            causes = tuple(one.cause for one in held) or (KeptWhile.OTHERS,)
            facts = MarkedNodeHeld(each.node.name, at, HeldWhile(causes))
        yield turn.act(each.node, Hold(until if until > turn.now else None), turn.why(facts))


# In this order; each is asked only where those before had nothing to do.
STEPS: tuple[Step, ...] = (remove, mark)
