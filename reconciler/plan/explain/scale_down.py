"""Why a node is, or is not, scaled down: size of its pool, order of deletion, and obstacles."""

from collections.abc import Iterator
from enum import Enum
from functools import cached_property

import msgspec

from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.desired import Declared
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Reason
from reconciler.model.plan.evaluation import ScalingReport, SizeEvaluation
from reconciler.model.policy.gpu import GpuPool
from reconciler.model.policy.scaling import DrainPolicy, NodeProvisioner
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.guards.frozen import Freeze, Freezes
from reconciler.plan.guards.observing import Observation, observation_of
from reconciler.plan.impact.departures import Departing, departing
from reconciler.plan.nodes.ownership import drain_policies, opt_out, settles_at, untouchable
from reconciler.plan.scaling.pool_view import KEYS, Key, RemovalOrder
from reconciler.plan.scaling.reasons import KeptWhile, kept_while
from reconciler.plan.sums import is_busy, is_empty
from reconciler.plan.windows import closed, provisioners_now


class StayCause(Enum):
    """Why a node is not scaled down, whatever the target size."""

    STANDS_STILL = "standsStill"
    DRAINING = "draining"
    BUSY = "busy"
    LENT = "lent"
    LEFT_TO_DRAIN = "leftToDrain"  # it is not ready
    SETTLING = "settling"
    WINDOW_CLOSED = "windowClosed"


class Stay(msgspec.Struct, frozen=True):
    """The cause, and its data."""

    cause: StayCause
    until: Instant | None = None  # of SETTLING, and of WINDOW_CLOSED if a window ever opens
    policy: str = ""  # of LEFT_TO_DRAIN: the DrainPolicy


class Keeper(msgspec.Struct, frozen=True):
    """Why a marked node is not deleted yet: the cause, and its origin."""

    cause: KeptWhile
    by: Reason | Declared[GpuPool] | Freeze  # a limit of its provisioner, its suspended pool, or a freeze


class MarkedNodes(msgspec.Struct, frozen=True):
    """Marked nodes of a pool, except those that this plan unmarks."""

    times: tuple[Instant, ...]  # deletion times
    still: int  # standstill nodes, which are not deleted


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
    def empty(self) -> list[Node]:
        """Empty nodes that can be scaled down, in order of deletion; marked nodes come first."""
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
        return sorted(free, key=lambda each: (self._position(each), order.key(each)))

    @cached_property
    def _drain_policy(self) -> Declared[DrainPolicy] | None:
        """The DrainPolicy that removes unready nodes of the pool."""
        return drain_policies(self.scene.inputs.desired).get(self.evaluated.pool)

    @property
    def left_to_drain(self) -> str:
        """The DrainPolicy that removes the node because it is not ready; empty if none."""
        return self._drain_policy.name if self._drain_policy and not self.node.is_ready else ""

    @property
    def leaves_at(self) -> Instant | None:
        return self.own.at if self.own else None

    def _position(self, node: Node) -> int:
        found = self.departing.get(node.name)
        return 2 if found is None else int(not found.is_marked)

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

    @property
    def is_hard(self) -> bool:
        taint = self.node.taint(names.DELETION_TIME)
        return taint is not None and taint.effect != "PreferNoSchedule"


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


def keepers_of(node: ScaleDownForecast) -> Iterator[Keeper]:
    """Empty if the node is not marked."""
    if node.own is None or not node.own.is_marked:
        return
    for each in node.evaluated.limits:
        if (cause := kept_while(each.reason.facts)) is not None:
            yield Keeper(cause, each.reason)
    pool = node.scene.inputs.desired.pool(node.evaluated.pool)
    if pool is not None and pool.spec.suspend:
        yield Keeper(KeptWhile.SUSPENDED, pool)
    if freeze := Freezes(node.scene.inputs, node.scene.fleet).of_node(node.node.name):
        yield Keeper(KeptWhile.FROZEN, freeze)


def stay_of(node: ScaleDownForecast) -> Stay | None:
    """Why the node is excluded whatever the target size; None if only the size decides."""
    scene, seen = node.scene, node.node
    if node.is_still:
        return Stay(StayCause.STANDS_STILL)
    if seen.taint(names.DRAINING) is not None:
        return Stay(StayCause.DRAINING)
    if is_busy(scene.fleet, seen):
        return Stay(StayCause.BUSY)
    if not is_empty(scene.fleet, seen):
        return Stay(StayCause.LENT)
    if policy := node.left_to_drain:
        return Stay(StayCause.LEFT_TO_DRAIN, policy=policy)
    settles = settles_at(seen, scene.fleet.claims_on(seen.pool).get(seen.name), scene.inputs.now)
    if settles is not None:
        return Stay(StayCause.SETTLING, settles)
    shut = closed(node.wish.spec.windows, scene.inputs.now) if node.evaluated.surplus else None
    return Stay(StayCause.WINDOW_CLOSED, shut.until) if shut is not None else None


def deciding_keys(node: ScaleDownForecast) -> list[Key]:
    """Sort keys of the deletion order that distinguish the empty nodes."""
    pool = node.scene.inputs.desired.pool(node.evaluated.pool)
    if pool is None:
        return [KEYS[-1]]
    order = RemovalOrder(pool.spec)
    return [each for each in KEYS if len({each.of(one, order.price(one)) for one in node.empty}) > 1]


def marked_nodes(scene: PlanningResult, evaluated: SizeEvaluation) -> MarkedNodes:
    left = departing(scene.inputs, scene.plan)
    marked = [each for each in evaluated.marked if each.node in left]
    times = tuple(each.at for each in marked if each.node not in scene.standstills)
    return MarkedNodes(times, len(marked) - len(times))
