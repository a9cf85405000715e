"""Why a node is, or is not, scaled down: size of its pool, order of deletion, and obstacles."""

from collections.abc import Iterator, Mapping
from functools import cached_property

import msgspec

from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.desired import Declared
from reconciler.model.instant import Instant, clock, timestamp
from reconciler.model.plan.evaluation import ScalingReport, SizeEvaluation
from reconciler.model.policy.scaling import DrainPolicy, NodeProvisioner
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.guards.frozen import Freezes
from reconciler.plan.guards.observing import Observation, observation_of
from reconciler.plan.impact.departures import Departing, departing
from reconciler.plan.nodes.ownership import drain_policies, opt_out, settles_at, untouchable
from reconciler.plan.scaling.marks import HARD_AHEAD_MS
from reconciler.plan.scaling.pool_view import KEYS, Key, KeyName, RemovalOrder
from reconciler.plan.scaling.reasons import KeptWhile, TargetGrows, TargetSize, kept_while
from reconciler.plan.scaling.size import KeptIf, decide_size, kept_if
from reconciler.plan.scaling.words import KEPT_WHILE
from reconciler.plan.sums import is_busy, is_empty
from reconciler.plan.windows import closed, provisioners_now
from reconciler.report.explain.about import Row, placed
from reconciler.report.sentences import fact_words, sentence, words_of
from reconciler.report.wording import counted


class ScaleDownForecast(msgspec.Struct, frozen=True, dict=True):
    """One node of a pool with a NodeProvisioner."""

    scene: PlanningResult
    node: Node
    wish: Declared[NodeProvisioner]
    evaluated: SizeEvaluation

    @cached_property
    def departing(self) -> dict[str, Departing]:
        """Departing nodes of its pool."""
        departing_nodes = departing(self.scene.inputs, self.scene.plan)
        return {name: each for name, each in departing_nodes.items() if each.pool == self.evaluated.pool}

    @cached_property
    def own(self) -> Departing | None:
        return self.departing.get(self.node.name)

    @cached_property
    def order(self) -> RemovalOrder | None:
        """None if no policy declares the pool."""
        pool = self.scene.inputs.desired.pool(self.evaluated.pool)
        return RemovalOrder(pool.spec) if pool is not None else None

    @cached_property
    def empty(self) -> list[Node]:
        """Empty nodes that can be scaled down, in order of deletion; marked nodes come first."""
        fleet, order = self.scene.fleet, self.order
        freezes = Freezes(self.scene.inputs, fleet)
        free = [
            each
            for each in fleet.nodes_of(self.evaluated.pool)
            if is_empty(fleet, each) and untouchable(each) is None and each.taint(names.DRAINING) is None
            if freezes.of_node_alone(each.name) is None and opt_out(each, self.scene.inputs.now) is None
            if each.is_ready or self.drain_policy is None
        ]
        return sorted(free, key=lambda each: (self._position(each), order.key(each))) if order is not None else free

    def _position(self, node: Node) -> int:
        found = self.departing.get(node.name)
        return 2 if found is None else int(not found.is_marked)

    @cached_property
    def drain_policy(self) -> Declared[DrainPolicy] | None:
        """The DrainPolicy that removes unready nodes of the pool."""
        return drain_policies(self.scene.inputs.desired).get(self.evaluated.pool)

    @cached_property
    def rank(self) -> int:
        """Position in the order, from 1; 0 for a node in use."""
        names_in_order = [each.name for each in self.empty]
        return names_in_order.index(self.node.name) + 1 if self.node.name in names_in_order else 0

    @property
    def observation(self) -> Observation | None:
        """Why its pool is only observed."""
        return observation_of(self.scene.inputs, self.evaluated.pool)

    @property
    def is_still(self) -> bool:
        """Whether the node has a taint of ours that no planner continues with, so that the time in the taint has no
        meaning."""
        return is_still(self.scene, self.node)


def is_still(scene: PlanningResult, node: Node) -> bool:
    """Whether the node has a taint of ours that no planner continues with by itself."""
    standstill = scene.standstills.get(node.name)
    return standstill is not None and not standstill.goes_on_alone


def forecast_scale_down(scene: PlanningResult, node: Node) -> ScaleDownForecast | None:
    """None if no NodeProvisioner was evaluated for its pool."""
    sizes = scene.plan.report(ScalingReport).sizes
    evaluated = next((each for each in sizes if node.pool and each.pool == node.pool), None)
    wishes = provisioners_now(scene.inputs)
    wish = next((each for each in wishes if evaluated and each.name == evaluated.provisioner), None)
    return ScaleDownForecast(scene, node, wish, evaluated) if evaluated and wish else None


def why_rows(node: ScaleDownForecast) -> Iterator[Row]:
    """For a node that is scaled down: why, why this node, and what would prevent it. For another node: why not."""
    if node.own is None or node.is_still:
        yield from _stays(node)
        return
    use, evaluated = node.evaluated.use, node.evaluated
    gone = min(evaluated.surplus, len(node.empty))
    text = f"{use.busy_nodes} of {counted(use.nodes, 'node')} busy: {size_words(evaluated)}"
    go = "would be deleted" if node.observation else "is deleted" if gone == 1 else "are deleted"
    yield "why", f"{text}, so {gone} of the {len(node.empty)} empty {go}"
    by = decide_size(use, node.wish.spec).by
    yield "why", f"{by}, {placed(node.wish.origin(f'spec.{by}'))}"
    yield from (("prevented by", words) for _, words in _keepers(node))
    if node.rank:
        yield "why this one", f"{_ordinal(node.rank)} in order: {_order_words(node)}"
        if kept := ", or ".join(_kept(node)):
            yield "kept if", kept


def _keepers(node: ScaleDownForecast) -> Iterator[tuple[KeptWhile, str]]:
    """Why a marked node is not deleted yet: limits of its provisioner, its suspended pool, or a freeze."""
    if node.own is None or not node.own.is_marked:
        return
    for each in node.evaluated.limits:
        if (cause := kept_while(each.reason.facts)) is not None:
            yield cause, sentence(each.reason)
    pool = node.scene.inputs.desired.pool(node.evaluated.pool)
    if pool is not None and pool.spec.suspend:
        yield KeptWhile.SUSPENDED, f"GpuPool/{pool.name} is suspended, {placed(pool.origin('spec.suspend'))}"
    if freeze := Freezes(node.scene.inputs, node.scene.fleet).of_node(node.node.name):
        yield KeptWhile.FROZEN, f"{freeze.scope_text} is frozen {freeze.until_text}"


def kept_words(node: ScaleDownForecast) -> str:
    """What prevents deletion of a marked node, as a clause after "while"."""
    return " and ".join(KEPT_WHILE[cause] for cause, _ in _keepers(node))


def stop_rows(node: ScaleDownForecast) -> Iterator[Row]:
    """The command that keeps the node."""
    if node.own is not None and not node.is_still and not node.observation:
        yield "to stop it", f'reconciler freeze node/{node.node.name} --for 4h --reason "..."'


def _stays(node: ScaleDownForecast) -> Iterator[Row]:
    wish = f"NodeProvisioner/{node.wish.name}"
    surplus, by = node.evaluated.surplus, f"{wish} {placed(node.wish.origin())}"
    if excluded := _excluded_words(node):
        yield "scaled down", f"no: {excluded.format(wish=wish)}, {placed(node.wish.origin())}"
    elif not node.rank:
        return
    elif surplus:
        go = "would be deleted" if node.observation else "is to be deleted" if surplus == 1 else "are to be deleted"
        are = f"of {counted(len(node.empty), 'empty node')} {go}"
        yield "scaled down", f"{surplus} {are}; this node is {_ordinal(node.rank)} in order; {by}"
    else:
        yield "scaled down", f"no: {size_words(node.evaluated)}; {by}"


def _excluded_words(node: ScaleDownForecast) -> str:
    """Why the node is excluded whatever the target size; empty if only the size decides. `{wish}` is the
    NodeProvisioner."""
    scene, seen = node.scene, node.node
    if node.is_still:
        return "the node is not removed in its current state, whatever the target size of {wish} is"
    if seen.taint(names.DRAINING) is not None:
        return "the drain of the node deletes the node, and {wish} does not"
    if is_busy(scene.fleet, seen):
        return "a pod runs on the node, and {wish} removes only empty nodes"
    if not is_empty(scene.fleet, seen):
        return "a GPU of the node is lent, and {wish} removes only empty nodes"
    if node.drain_policy is not None and not seen.is_ready:
        return f"the node is not ready, so DrainPolicy/{node.drain_policy.name} removes the node, and {{wish}} does not"
    settles = settles_at(seen, scene.fleet.claims_on(seen.pool).get(seen.name), scene.inputs.now)
    if settles is not None:
        return f"the node is new, so {{wish}} does not remove it before {_at(settles)}"
    shut = closed(node.wish.spec.windows, scene.inputs.now) if node.evaluated.surplus else None
    if shut is None:
        return ""
    if shut.until is None:
        return "no window of {wish} ever opens"
    return f"no window of {{wish}} is open before {_at(shut.until)}"


def size_words(evaluated: SizeEvaluation) -> str:
    """Reason of the target size, as a clause."""
    match evaluated.reason.facts:
        case TargetSize(why=why) | TargetGrows(why=why):
            return fact_words(why)
        case _:
            return words_of(evaluated.reason)


_ORDER: Mapping[KeyName, str] = {
    "readiness": "unready first",
    "price": "more expensive first",
    "priced": "unknown price last",
    "name": "then by name",
}


def _order_words(node: ScaleDownForecast) -> str:
    bought = f" ({node.node.capacity_type})" if node.node.capacity_type else ""
    words = [f"{_ORDER[each.name]}{bought if each.name == 'price' else ''}" for each in _deciding_keys(node)]
    return ", ".join(words).removeprefix("then ") or "the only empty node"


def _deciding_keys(node: ScaleDownForecast) -> list[Key]:
    """Sort keys of the deletion order that distinguish the empty nodes."""
    order = node.order
    if order is None:
        return [KEYS[-1]]
    return [each for each in KEYS if len({each.of(one, order.price(one)) for one in node.empty}) > 1]


def _kept(node: ScaleDownForecast) -> Iterator[str]:
    own, spec, use = node.own, node.wish.spec, node.evaluated.use
    taint = node.node.taint(names.DELETION_TIME)
    if own is not None and (taint is None or taint.effect == "PreferNoSchedule"):
        soft = f" (the taint is soft until {_at(Instant(own.at - HARD_AHEAD_MS))})" if own.at is not None else ""
        yield f"a pod is scheduled to the node{soft}"
    if node.evaluated.pods:
        return
    found: KeptIf = kept_if(node.evaluated, spec, node.rank)
    if found.gpus_used is not None:
        more = found.gpus_used - use.gpus_used
        verb = "is" if more == 1 else "are"
        yield f"{counted(more, 'more GPU')} {verb} in use ({found.gpus_used}, now {use.gpus_used})"
    if found.percent is not None:
        yield f"minGPUUtilizationPercent is {found.percent}{' or less' if found.percent else ''}"
    if found.unutilized is not None and spec.min_unutilized_gpu_nodes:
        yield f"minUnutilizedGPUNodes is {found.unutilized} or more"


def _at(moment: Instant) -> str:
    """The time of day, to the second."""
    return f"{timestamp(moment)[11:19]}Z"


def _ordinal(number: int) -> str:
    last = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number % 100 in {11, 12, 13} else last}"


def marked_words(scene: PlanningResult, evaluated: SizeEvaluation) -> str:
    """Number of marked nodes, except those that this plan unmarks, and when they are deleted. Standstill nodes are not
    deleted."""
    left = departing(scene.inputs, scene.plan)
    marked = [each for each in evaluated.marked if each.node in left]
    times = [each.at for each in marked if each.node not in scene.standstills]
    still = len(marked) - len(times)
    words = [_deleted_words(scene, evaluated.pool, times)] if times else []
    words += [f"{counted(still, 'node')} marked, but not deleted in the current state"] if still else []
    return "; ".join(words)


def _deleted_words(scene: PlanningResult, pool: str, times: list[Instant]) -> str:
    first, last = clock(min(times), scene.inputs.now), clock(max(times), scene.inputs.now)
    when = first if first == last else f"{first} to {last}"
    observation = observation_of(scene.inputs, pool)
    deleted = "deleted" if observation is None else f"to be deleted, if {observation.unless},"
    return f"{counted(len(times), 'node')}, {deleted} at {when} if still empty"
