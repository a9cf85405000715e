"""Holds for nodes with a taint of reconciler that no planner continues.

Theory of operation. A planner taints a node, and continues in later plans. The planner can't continue when the pool
changes to mode Observe, its NodePool belongs to somebody else, its policy was deleted, a guard is for another
cluster, or the pool or node is suspended or frozen. The taint stays on the node. So each such node gets a hold with
the cause and what a person can do, instead of the planner's hold that announces when the node is removed.

In an observed pool, planners still decide what would be done, and those decisions are reported beside the hold.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property, partial
from typing import Any

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.desired import Declared
from reconciler.model.plan.decision import Decision, Delete, Facts, Hold, Reason, node_ref
from reconciler.model.plan.inputs import Inputs
from reconciler.model.policy.gpu import GpuPool
from reconciler.plan.drain import reasons as drains
from reconciler.plan.guards.admission import of_another_cluster
from reconciler.plan.guards.frozen import Freezes, Frozen, FrozenUnreadably, PoolSuspended
from reconciler.plan.guards.observing import Observation, observation_of, other_keeper
from reconciler.plan.guards.reasons import WrongCluster
from reconciler.plan.nodes.ownership import untouchable
from reconciler.plan.reasons import OfNode
from reconciler.plan.scaling import reasons as scaling

PLANNER = "taints"  # no planner: the holds on taints that no planner continues


class StandingStill(OfNode, frozen=True):
    """Base of reasons for taints that no planner continues. Has no code of its own."""

    taints: tuple[str, ...]  # keys of reconciler's taints, in the order of _OURS


class TaintStays(StandingStill, frozen=True):
    template = (
        "{node} has {the_taints}, and {cause}: {undone}. Once {goes_on}, planners continue with {node}; {untaint} "
        "removes {them}."
    )
    by_person = True

    keeps_pods_away: bool
    observation: Observation | None = None  # None: no policy declares the pool
    pool: str = ""  # pool that no policy of the environment declares; empty: the node belongs to no pool
    environment: str = ""  # environment of the plan


class TaintOfOtherEnvironment(StandingStill, frozen=True):
    template = (
        "{node} has {the_taints}, and {observation}: the controller of that environment decides about "
        "{node}, and no action is carried out here."
    )

    observation: Observation


REASONS = (TaintStays, TaintOfOtherEnvironment)

# Holds that hold back no request of this environment.
RESTING = frozenset({TaintOfOtherEnvironment})

_OURS = (names.DELETION_TIME, names.DRAINING, names.DRAIN_CANDIDATE, names.ARRIVING)
_PLANNERS = frozenset({scaling.PLANNER, drains.PLANNER})
STOPPED = (PoolSuspended, Frozen, FrozenUnreadably)  # planners continue when the cause ends
# Holds that already give the reason for a node whose pool is not observed.
_TELLING = (*STOPPED, scaling.MarkedNodeHeld, WrongCluster)


class Standstill(msgspec.Struct, frozen=True):
    """Why no action is carried out on a node with a taint of reconciler."""

    node: Node
    reason: Reason
    hold: Hold
    observation: Observation | None = None  # the pool is observed only

    @property
    def goes_on_alone(self) -> bool:
        """Whether planners continue with the node when a suspension or a freeze ends."""
        return isinstance(self.reason.facts, STOPPED)

    @property
    def decision(self) -> Decision:
        return Decision(PLANNER, node_ref(self.node), self.hold, self.reason, self.node.pool)


class Standstills:
    """Lookups of standstills for one plan."""

    def __init__(self, inputs: Inputs, fleet: Fleet) -> None:
        self._inputs, self._fleet = inputs, fleet
        self._freezes = Freezes(inputs, fleet)
        self._observation = cache(partial(observation_of, inputs))  # by pool
        self._why_elsewhere = cache(partial(of_another_cluster, inputs))  # by pool
        self._may_stop = cache(self._may_nodes_stop)

    @cached_property
    def all(self) -> dict[str, Standstill]:
        """Standstills by node name. Nodes that planners remove come first."""
        found = ((node.name, self._of(node)) for node in sorted(self._tainted(), key=_in_order))
        return {name: standstill for name, standstill in found if standstill is not None}

    @cached_property
    def _deleted_node_pools(self) -> frozenset[str]:
        """NodePools that are being deleted."""
        return frozenset(each.name for each in self._inputs.observed.node_pools if each.metadata.deletion_timestamp)

    def _tainted(self) -> Iterator[Node]:
        """Nodes with a taint of reconciler, without nodes that are being deleted."""
        fleet, node_pools = self._fleet, self._inputs.observed.node_pools
        pools = {each.name for each in self._inputs.desired.pools} | {each.name for each in node_pools if each.is_ours}
        closed = (facts for pool in sorted(pools) for facts in fleet.pool(pool).closed)
        of_pools = (
            each for each in (*fleet.nodes_unsettled, *fleet.nodes_drained, *closed) if self._may_stop(each.pool)
        )
        nodes = {each.name: each.node for each in of_pools}
        return (each for each in nodes.values() if not each.metadata.leaving and taints_of(each))

    def _may_nodes_stop(self, pool: str) -> bool:
        """Whether a node of the pool may stand still. Most pools have no cause, and their nodes are not looked at."""
        declared = self._inputs.desired.pool(pool) if pool else None
        is_stopped = declared is None or declared.spec.suspend or bool(self._freezes.all())
        return is_stopped or self._why_elsewhere(pool) is not None or self._observation(pool) is not None

    def _of(self, node: Node) -> Standstill | None:
        declared = self._inputs.desired.pool(node.pool) if node.pool else None
        if node.pool in self._deleted_node_pools:
            return None  # the node is deleted with its NodePool
        if declared is None:
            return self._undeclared(node)
        if (why := self._why_elsewhere(node.pool)) is not None:
            return Standstill(node, why, Hold())
        observation = self._observation(node.pool)
        if observation is not None:
            return Standstill(node, untaken(node) or self._observed(node, observation, declared), Hold(), observation)
        return None if taints_of(node) == [names.ARRIVING] else self._stopped(node, declared)

    def _stopped(self, node: Node, declared: Declared[GpuPool]) -> Standstill | None:
        """Standstill of a node whose pool is not observed: suspended or frozen. Taints are still removed there."""
        subject = node_ref(node)
        if declared.spec.suspend:
            why = Reason(PoolSuspended(object=subject, pool=node.pool), declared.origin("spec.suspend"))
            return Standstill(node, why, Hold())
        freeze = self._freezes.of_node(node.name)
        if freeze is None:
            return None
        return Standstill(node, Reason(freeze.facts(subject), declared.origin()), Hold(freeze.until))

    def _observed(self, node: Node, observation: Observation, declared: Declared[GpuPool]) -> Reason:
        taints = tuple(taints_of(node))
        if observation.environment:
            foreign = TaintOfOtherEnvironment(node=node.name, taints=taints, observation=observation)
            return Reason(foreign, declared.origin())
        whole = msgspec.structs.replace(observation, is_suspended=declared.spec.suspend)
        facts = TaintStays(node=node.name, taints=taints, keeps_pods_away=_keeps_pods_away(node), observation=whole)
        return Reason(facts, declared.origin("spec.mode" if observation.by_mode else ""))

    def _undeclared(self, node: Node) -> Standstill | None:
        """Standstill of a node without a declared pool. Nodes of other environments are skipped."""
        if other_keeper(self._inputs, node.pool):
            return None
        facts = TaintStays(
            node=node.name,
            taints=tuple(taints_of(node)),
            keeps_pods_away=_keeps_pods_away(node),
            pool=node.pool,
            environment=self._inputs.desired.environment,
        )
        return Standstill(node, untaken(node) or Reason(facts), Hold())


def with_standstill_holds(inputs: Inputs, fleet: Fleet, decisions: Iterable[Decision]) -> tuple[Decision, ...]:
    """The decisions, with a hold for each node that stands still in place of holds that announce its removal."""
    decisions = tuple(decisions)
    standstills = Standstills(inputs, fleet).all
    if not standstills:
        return decisions
    gone = {each.subject.name for each in decisions if each.subject.kind == "NodePool" and isinstance(each.act, Delete)}
    standstills = {name: each for name, each in standstills.items() if each.node.pool not in gone}
    kept = tuple(each for each in decisions if not _announces(each, standstills.get(each.subject.name)))
    telling = {each.subject.name for each in kept if each.subject.kind == "Node" and _tells(each)}
    return (*kept, *(each.decision for name, each in standstills.items() if each.observation or name not in telling))


def _announces(decision: Decision, standstill: Standstill | None) -> bool:
    """Whether the decision announces a step that a node at a standstill does not take."""
    if standstill is None or decision.subject.kind != "Node" or not isinstance(decision.act, Hold):
        return False
    if decision.planner not in _PLANNERS:
        return False
    return bool(standstill.observation) or not isinstance(decision.reason.facts, _TELLING)


def _tells(decision: Decision) -> bool:
    """Whether the node needs no further hold: its action is carried out, or its hold has the same cause."""
    return not isinstance(decision.act, Hold) or isinstance(decision.reason.facts, _TELLING)


def taints_of(node: Node) -> list[str]:
    """Keys of reconciler's taints on the node, in the order of reports."""
    borne = {each.key for each in node.spec.taints}
    return [key for key in _OURS if key in borne]


def untaken(node: Node) -> Reason | None:
    """Why the node is left to Karpenter, whatever taint the node has."""
    return untouchable(node) if node.taint(names.DISRUPTED) is not None else None


def _in_order(node: Node) -> tuple[int, str]:
    return _OURS.index(taints_of(node)[0]), node.name


def _keeps_pods_away(node: Node) -> bool:
    return any(each.key in _OURS and each.effect != "PreferNoSchedule" for each in node.spec.taints)


# --- Text for reasons about taints that stay.


def _the_taints(facts: StandingStill) -> str:
    return f"the taint{'' if len(facts.taints) == 1 else 's'} {' and '.join(facts.taints)}"


def _cause(facts: TaintStays) -> str:
    if facts.observation is not None:
        return facts.observation.causes_text
    if not facts.pool:
        return "belongs to no pool"
    return f"no policy of environment {facts.environment} declares pool {facts.pool}"


def _undone(facts: TaintStays) -> str:
    """What the taints cause."""
    is_one = len(facts.taints) == 1
    stays = "the taint stays" if is_one else "the taints stay"
    if facts.keeps_pods_away:
        stays += f", which {'keeps' if is_one else 'keep'} new pods away"
    if names.DRAINING in facts.taints:
        return f"{facts.node} is neither drained nor deleted, and {stays}"
    return f"{facts.node} is not deleted, and {stays}" if names.DELETION_TIME in facts.taints else stays


def _goes_on(facts: TaintStays) -> str:
    """Conditions under which planners continue with the node."""
    observation = facts.observation
    if observation is None:
        return f"a GpuPool {facts.pool} is declared" if facts.pool else "the node belongs to a GpuPool"
    pool = observation.pool
    steps = (
        (observation.by_mode, f"GpuPool/{pool} is in mode Enforce"),
        (observation.is_suspended, f"GpuPool/{pool} is not suspended"),
        (observation.is_unadopted, f"NodePool/{pool} is adopted (adopt: true in GpuPool/{pool})"),
    )
    return " and ".join(words for applies, words in steps if applies)


PARTS: Mapping[type[Facts], Mapping[str, Callable[[Any], str]]] = {
    TaintOfOtherEnvironment: {"the_taints": _the_taints},
    TaintStays: {
        "the_taints": _the_taints,
        "cause": _cause,
        "undone": _undone,
        "goes_on": _goes_on,
        "untaint": lambda facts: f"kubectl taint nodes {facts.node} {' '.join(f'{key}-' for key in facts.taints)}",
        "them": lambda facts: "the taint" if len(facts.taints) == 1 else "the taints",
    },
}
