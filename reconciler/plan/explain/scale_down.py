"""Why a node is scaled down, or is not: what its provisioner goes by, which nodes go first, and what would keep it."""

from collections.abc import Iterator
from functools import cached_property

import msgspec

from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.desired import Declared
from reconciler.model.human_time import clock
from reconciler.model.instant import Instant, timestamp
from reconciler.model.plan.size_evaluation import SizeEvaluation
from reconciler.model.policy.drain_policy import DrainPolicy
from reconciler.model.policy.node_provisioner import NodeProvisioner
from reconciler.plan.explain.about import counted, placed
from reconciler.plan.files.planning_result import PlanningResult
from reconciler.plan.guards.frozen import Freezes
from reconciler.plan.guards.observing import Observation, observation_of
from reconciler.plan.impact.scale_down import Departing, departing
from reconciler.plan.nodes.initialization import settles_at
from reconciler.plan.nodes.ownership import opt_out, untouchable
from reconciler.plan.nodes.removers import drain_policies
from reconciler.plan.scaling.counterfactual_size import KeptIf, kept_if
from reconciler.plan.scaling.marks import HARD_AHEAD_MS
from reconciler.plan.scaling.reasons import KeptWhile, TargetGrows, TargetSize, kept_while
from reconciler.plan.scaling.removal_order import KEYS, RemovalOrder
from reconciler.plan.scaling.size import decide_size
from reconciler.plan.scaling.words import KEPT_WHILE
from reconciler.plan.sentences import fact_words, sentence, words_of
from reconciler.plan.sizes_by_time import provisioners_now
from reconciler.plan.sums.usage import is_busy, is_empty
from reconciler.plan.windows import closed

Row = tuple[str, str]


class Going(msgspec.Struct, frozen=True, dict=True):
    """One node of a pool that a provisioner sizes."""

    scene: PlanningResult
    node: Node
    wish: Declared[NodeProvisioner]
    evaluated: SizeEvaluation

    @cached_property
    def departing(self) -> dict[str, Departing]:
        """Of its pool."""
        found = departing(self.scene.inputs, self.scene.plan)
        return {name: each for name, each in found.items() if each.pool == self.evaluated.pool}

    @cached_property
    def own(self) -> Departing | None:
        return self.departing.get(self.node.name)

    @cached_property
    def empty(self) -> list[Node]:
        """The empty nodes that are ours to take, in the order in which they go; those that are marked come first."""
        fleet, pool = self.scene.fleet, self.scene.inputs.desired.pool(self.evaluated.pool)
        freezes = Freezes(self.scene.inputs, fleet)
        free = [
            each
            for each in fleet.nodes_of(self.evaluated.pool)
            if is_empty(fleet, each) and untouchable(each) is None and each.taint(names.DRAINING) is None
            if freezes.of_node_alone(each.name) is None and opt_out(each, self.scene.inputs.now) is None
            if each.is_ready or self._drain_policy is None
        ]
        if pool is None:
            return free
        order = RemovalOrder(pool.spec)
        return sorted(free, key=lambda each: (self._turn(each), order.key(each)))

    @cached_property
    def _drain_policy(self) -> Declared[DrainPolicy] | None:
        """The one to which nodes of the pool belong that are not ready."""
        return drain_policies(self.scene.inputs.desired).get(self.evaluated.pool)

    def why_left_to_drain(self) -> str:
        """The policy that removes the node since it is not ready; nothing where none does."""
        return f"DrainPolicy/{self._drain_policy.name}" if self._drain_policy and not self.node.is_ready else ""

    def _turn(self, node: Node) -> int:
        found = self.departing.get(node.name)
        return 2 if found is None else int(not found.is_marked)

    @cached_property
    def rank(self) -> int:
        """Counted from 1; 0 for a node that is in use."""
        names_in_order = [each.name for each in self.empty]
        return names_in_order.index(self.node.name) + 1 if self.node.name in names_in_order else 0

    @property
    def observation(self) -> Observation | None:
        """Why its pool is only observed."""
        return observation_of(self.scene.inputs, self.evaluated.pool)

    @property
    def is_still(self) -> bool:
        """Whether it bears a taint with which no planner goes on, and whose time says nothing therefore."""
        return is_still(self.scene, self.node)

    @property
    def is_hard(self) -> bool:
        taint = self.node.taint(names.DELETION_TIME)
        return taint is not None and taint.effect != "PreferNoSchedule"


def is_still(scene: PlanningResult, node: Node) -> bool:
    """Whether the node bears a taint with which no planner goes on by itself."""
    found = scene.standstills.get(node.name)
    return found is not None and not found.goes_on_alone


def going(scene: PlanningResult, node: Node) -> Going | None:
    """Nothing where no provisioner was evaluated for its pool."""
    evaluated = next((each for each in scene.plan.sizes if node.pool and each.pool == node.pool), None)
    wishes = provisioners_now(scene.inputs)
    wish = next((each for each in wishes if evaluated and each.name == evaluated.provisioner), None)
    return Going(scene, node, wish, evaluated) if evaluated and wish else None


def why_rows(node: Going) -> Iterator[Row]:
    """Of one that goes: why, why this one, and what would keep it. Of one that stays: why that one."""
    if node.own is None or node.is_still:
        yield from _stays(node)
        return
    use, evaluated = node.evaluated.use, node.evaluated
    gone = min(evaluated.surplus, len(node.empty))
    told = f"{use.busy_nodes} of {counted(use.nodes, 'node')} busy: {size_words(evaluated)}"
    go = "would go" if node.observation else "goes" if gone == 1 else "go"
    yield "why", f"{told}, so {gone} of the {len(node.empty)} empty {go}"
    by = decide_size(use, node.wish.spec).by
    yield "why", f"{by}, {placed(node.wish.origin(f'spec.{by}'))}"
    yield from (("kept from", told) for _, told in kept_from(node))
    if node.rank:
        yield "why this one", f"{_ordinal(node.rank)} in order: {_order_told(node)}"
        if kept := ", or ".join(_kept(node)):
            yield "kept if", kept


def kept_from(node: Going) -> Iterator[tuple[str, str]]:
    """Of one that is marked, what its deletion waits for: as a sentence goes on with it, and in full."""
    if node.own is None or not node.own.is_marked:
        return
    for each in node.evaluated.limits:
        if (cause := kept_while(each.reason.facts)) is not None:
            yield KEPT_WHILE[cause], sentence(each.reason)
    pool = node.scene.inputs.desired.pool(node.evaluated.pool)
    if pool is not None and pool.spec.suspend:
        yield (
            KEPT_WHILE[KeptWhile.SUSPENDED],
            f"GpuPool/{pool.name} is suspended, {placed(pool.origin('spec.suspend'))}",
        )
    if freeze := Freezes(node.scene.inputs, node.scene.fleet).of_node(node.node.name):
        yield KEPT_WHILE[KeptWhile.FROZEN], f"{freeze.what} is frozen {freeze.told}"


def stop_rows(node: Going) -> Iterator[Row]:
    """How a person keeps it."""
    if node.own is not None and not node.is_still and not node.observation:
        yield "to stop it", f'reconciler freeze node/{node.node.name} --for 4h --reason "..."'


def leaves_at(node: Going) -> Instant | None:
    return node.own.at if node.own else None


def _stays(node: Going) -> Iterator[Row]:
    surplus, by = node.evaluated.surplus, f"NodeProvisioner/{node.wish.name} {placed(node.wish.origin())}"
    if why := _why_not(node):
        yield "scaled down", f"{why} {by}"
    elif not node.rank:
        return
    elif surplus:
        go = "would go" if node.observation else "is to go" if surplus == 1 else "are to go"
        are = f"of {counted(len(node.empty), 'empty node')} {go}"
        yield "scaled down", f"{surplus} {are}, and it comes {_ordinal(node.rank)}; {by}"
    else:
        yield "scaled down", f"no: {size_words(node.evaluated)}; {by}"


def _why_not(node: Going) -> str:
    """Why it is no empty node, whatever the size; the provisioner that says so follows."""
    scene, seen = node.scene, node.node
    if node.is_still:
        return "not as things stand, whatever size is asked for by"
    if seen.taint(names.DRAINING) is not None:
        return "not while it is drained: it is left to whoever drains it;"
    if is_busy(scene.fleet, seen):
        return "not while a pod is on it: only empty nodes are, by"
    if not is_empty(scene.fleet, seen):
        return "not while a GPU of it is lent: only empty nodes are, by"
    if policy := node.why_left_to_drain():
        return f"not while it is not ready: {policy} removes it instead of"
    claim = scene.fleet.claims_on(seen.pool).get(seen.name)
    settles = settles_at(seen, claim, scene.inputs.now)
    if settles is not None:
        return f"not before {_at(settles)}: it has just come, and settles until then;"
    shut = closed(node.wish.spec.windows, scene.inputs.now) if node.evaluated.surplus else None
    if shut is None:
        return ""
    return f"not before {_at(shut.until)}: until then no window is open;" if shut.until else "no window ever opens;"


def size_words(evaluated: SizeEvaluation) -> str:
    """Why its pool is wanted with so many nodes, as a part of a sentence."""
    match evaluated.reason.facts:
        case TargetSize(why=why) | TargetGrows(why=why):
            return fact_words(why)
        case _:
            return words_of(evaluated.reason)


def _order_told(node: Going) -> str:
    """Only keys that tell the empty nodes apart."""
    pool = node.scene.inputs.desired.pool(node.evaluated.pool)
    if pool is None:
        return "by name"
    order = RemovalOrder(pool.spec)
    told = [each for each in KEYS if len({each.of(one, order.price(one)) for one in node.empty}) > 1]
    words = []
    for each in told:
        aside = f" ({node.node.capacity_type})" if each.is_price and node.node.capacity_type else ""
        words.append(f"{each.told}{aside}")
    return ", ".join(words).removeprefix("then ") or "the only one that is empty"


def _kept(node: Going) -> Iterator[str]:
    own, spec, use = node.own, node.wish.spec, node.evaluated.use
    if own is not None and not node.is_hard:
        soft = f" (the taint is soft until {_at(Instant(own.at - HARD_AHEAD_MS))})" if own.at is not None else ""
        yield f"a pod lands on it{soft}"
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
    """How many nodes are marked, and when they go; those that stand still go at no time, and those that this plan takes
    the mark off are none."""
    left = departing(scene.inputs, scene.plan)
    marked = [each for each in evaluated.marked if each.node in left]
    going = [each for each in marked if each.node not in scene.standstills]
    still = len(marked) - len(going)
    words = [_deleted_words(scene, evaluated.pool, [each.at for each in going])] if going else []
    words += [f"{counted(still, 'node')} marked, and not deleted as things stand"] if still else []
    return "; ".join(words)


def _deleted_words(scene: PlanningResult, pool: str, times: list[Instant]) -> str:
    first, last = clock(min(times), scene.inputs.now), clock(max(times), scene.inputs.now)
    when = first if first == last else f"{first} to {last}"
    observation = observation_of(scene.inputs, pool)
    deleted = "deleted" if observation is None else f"to be deleted, if {observation.unless},"
    return f"{counted(len(times), 'node')}, {deleted} at {when} if still empty"
