"""Nodes that bear a taint of ours, and on which nothing is carried out whatever planners decide: what is true of them.

Theory of operation. A planner marks a node, and goes on with it in later plans. It can't any more once the pool went to
mode Observe, its NodePool turned out to be somebody else's, its policy was deleted, a guard is for another cluster, or
the pool or the node is suspended or frozen. The taint stays on the node all the same. So each such node has a hold that
names the cause and what a person can do, instead of the hold by which its planner would announce when the node goes.

Where a pool is only observed, planners still decide what would be done, and those decisions stand beside the hold.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.desired import Declared
from reconciler.model.kinds.gpu_pool import GpuPool
from reconciler.model.planned.action import Delete, Hold, Ref
from reconciler.model.planned.decision import Decision
from reconciler.model.planned.inputs import Inputs
from reconciler.model.planned.reason import Reason
from reconciler.plan.drain import reasons as drains
from reconciler.plan.guards.elsewhere import of_another_cluster
from reconciler.plan.guards.frozen import FROZEN, FROZEN_UNREADABLY, SUSPENDED, Freezes
from reconciler.plan.guards.observing import Observation, observation_of, other_keeper
from reconciler.plan.guards.reasons import WRONG_CLUSTER
from reconciler.plan.reasons import Because, code_of
from reconciler.plan.removal import untouchable
from reconciler.plan.scaling import reasons as scaling

PLANNER = "taints"  # none of the planners: what is told of taints that no planner goes on with

STAYS = Because(
    "TaintStays",
    "{node} bears {taints}, and {cause}: {undone}. Once {goes_on}, planners go on with {node}; {untaint} takes {off} "
    "off.",
    by_person=True,
)
OF_OTHER_ENVIRONMENT = Because(
    "TaintOfOtherEnvironment",
    "{node} bears {taints}, and {cause}: the controller of that environment decides what becomes of {node}, and "
    "nothing is carried out here.",
)

REASONS = (STAYS, OF_OTHER_ENVIRONMENT)

# By which nothing is held that was asked for here.
RESTING = frozenset({OF_OTHER_ENVIRONMENT.code})

_OURS = (names.DELETION_TIME, names.DRAINING, names.DRAIN_CANDIDATE, names.ARRIVING)
_PLANNERS = frozenset({scaling.PLANNER, drains.PLANNER})
STOPPED = frozenset({SUSPENDED.code, FROZEN.code, FROZEN_UNREADABLY.code})  # planners go on once it ends
# Holds that say by themselves why a node rests that is not only observed.
_TELLING = STOPPED | {code_of(scaling.MarkedNodeHeld), WRONG_CLUSTER.code}


class Standstill(msgspec.Struct, frozen=True):
    """Why nothing is carried out on a node that bears a taint of ours."""

    node: Node
    reason: Reason
    hold: Hold
    observation: Observation | None = None  # its pool is only observed

    @property
    def goes_on_alone(self) -> bool:
        """Whether planners go on with the node once a suspension or a freeze is over."""
        return self.reason.code in STOPPED

    @property
    def decision(self) -> Decision:
        subject = Ref("Node", "", self.node.name, self.node.metadata.uid)
        return Decision(PLANNER, subject, self.hold, self.reason, self.node.pool)


class Standstills:
    """Owner of what was looked up of them for one plan."""

    def __init__(self, inputs: Inputs, fleet: Fleet) -> None:
        self._inputs, self._fleet = inputs, fleet
        self._freezes = Freezes(inputs, fleet)
        self._observations: dict[str, Observation | None] = {}
        self._elsewhere: dict[str, Reason | None] = {}

    @cached_property
    def all(self) -> dict[str, Standstill]:
        """By the name of the node; those that planners take away come first."""
        found = ((node.name, self._of(node)) for node in sorted(self._tainted(), key=_in_order))
        return {name: standstill for name, standstill in found if standstill is not None}

    @cached_property
    def _going(self) -> frozenset[str]:
        """NodePools that are being deleted."""
        return frozenset(each.name for each in self._inputs.observed.node_pools if each.metadata.deletion_timestamp)

    def _tainted(self) -> Iterator[Node]:
        """Nodes with a taint of ours, those that are being deleted left out."""
        fleet, node_pools = self._fleet, self._inputs.observed.node_pools
        pools = {each.name for each in self._inputs.desired.pools} | {each.name for each in node_pools if each.is_ours}
        closed = (facts for pool in sorted(pools) for facts in fleet.pool(pool).closed)
        found = {each.name: each.node for each in (*fleet.nodes_unsettled, *fleet.nodes_drained, *closed)}
        return (each for each in found.values() if not each.metadata.leaving and taints_of(each))

    def _of(self, node: Node) -> Standstill | None:
        declared = self._inputs.desired.pool(node.pool) if node.pool else None
        if node.pool in self._going:
            return None  # its NodePool takes it along
        if declared is None:
            return self._undeclared(node)
        if (why := self._why_elsewhere(node.pool)) is not None:
            return Standstill(node, why, Hold())
        observation = self._observation(node.pool)
        if observation is not None:
            return Standstill(node, untaken(node) or self._observed(node, observation, declared), Hold(), observation)
        return None if taints_of(node) == [names.ARRIVING] else self._stopped(node, declared)

    def _stopped(self, node: Node, declared: Declared[GpuPool]) -> Standstill | None:
        """Of a pool that is acted on otherwise; taints still come off there."""
        title = f"Node/{node.name}"
        if declared.spec.suspend:
            why = SUSPENDED.reason(declared.origin("spec.suspend"), object=title, pool=node.pool)
            return Standstill(node, why, Hold())
        freeze = self._freezes.of_node(node.name)
        if freeze is None:
            return None
        because = FROZEN if freeze.until is not None else FROZEN_UNREADABLY
        facts = {"what": freeze.what, "until": freeze.written, "because": freeze.because, "object": title}
        return Standstill(node, because.reason(declared.origin(), **facts), Hold(freeze.until))

    def _observed(self, node: Node, observation: Observation, declared: Declared[GpuPool]) -> Reason:
        facts = {"node": node.name, "taints": _taint_words(node), "cause": observation.told}
        if observation.environment:
            return OF_OTHER_ENVIRONMENT.reason(declared.origin(), **facts)
        facts |= _borne(node)
        steps = (
            (observation.by_mode, f"GpuPool/{node.pool} is in mode Enforce"),
            (declared.spec.suspend, f"GpuPool/{node.pool} is not suspended"),
            (observation.is_unadopted, f"NodePool/{node.pool} is adopted (adopt: true in GpuPool/{node.pool})"),
        )
        facts["goes_on"] = " and ".join(words for applies, words in steps if applies)
        facts["cause"] += f", and GpuPool/{node.pool} is suspended" if declared.spec.suspend else ""
        return STAYS.reason(declared.origin("spec.mode" if observation.by_mode else ""), **facts)

    def _undeclared(self, node: Node) -> Standstill | None:
        """What another environment keeps is none of these policies' affair."""
        if other_keeper(self._inputs, node.pool):
            return None
        environment = self._inputs.desired.environment
        why = f"no policy of environment {environment} declares pool {node.pool}" if node.pool else "belongs to no pool"
        goes_on = f"a GpuPool {node.pool} is declared" if node.pool else "it belongs to a GpuPool"
        facts = _borne(node) | {"cause": why, "goes_on": goes_on}
        return Standstill(node, untaken(node) or STAYS.reason(None, **facts), Hold())

    def _observation(self, pool: str) -> Observation | None:
        if pool not in self._observations:
            self._observations[pool] = observation_of(self._inputs, pool)
        return self._observations[pool]

    def _why_elsewhere(self, pool: str) -> Reason | None:
        if pool not in self._elsewhere:
            self._elsewhere[pool] = of_another_cluster(self._inputs, pool)
        return self._elsewhere[pool]


def told_of_standstills(inputs: Inputs, fleet: Fleet, decisions: Iterable[Decision]) -> tuple[Decision, ...]:
    """The decisions, with a hold for each node that stands still instead of what announces that it goes."""
    decisions = tuple(decisions)
    found = Standstills(inputs, fleet).all
    if not found:
        return decisions
    gone = {each.subject.name for each in decisions if each.subject.kind == "NodePool" and isinstance(each.act, Delete)}
    found = {name: each for name, each in found.items() if each.node.pool not in gone}
    kept = tuple(each for each in decisions if not _announces(each, found.get(each.subject.name)))
    telling = {each.subject.name for each in kept if each.subject.kind == "Node" and _tells(each)}
    return (*kept, *(each.decision for name, each in found.items() if each.observation or name not in telling))


def _announces(decision: Decision, standstill: Standstill | None) -> bool:
    """Whether it says what a node waits for that goes nowhere."""
    if standstill is None or decision.subject.kind != "Node" or not isinstance(decision.act, Hold):
        return False
    if decision.planner not in _PLANNERS:
        return False
    return bool(standstill.observation) or decision.reason.code not in _TELLING


def _tells(decision: Decision) -> bool:
    """Whether a node needs no further hold: what is done to it goes on, or is held with the same cause."""
    return not isinstance(decision.act, Hold) or decision.reason.code in _TELLING


def taints_of(node: Node) -> list[str]:
    """The keys of our taints on the node, in the order in which they are told."""
    borne = {each.key for each in node.spec.taints}
    return [key for key in _OURS if key in borne]


def untaken(node: Node) -> Reason | None:
    """Why somebody else takes the node away, whatever taint it bears."""
    return untouchable(node) if node.taint(names.DISRUPTED) is not None else None


def _in_order(node: Node) -> tuple[int, str]:
    return _OURS.index(taints_of(node)[0]), node.name


def _taint_words(node: Node) -> str:
    keys = taints_of(node)
    return f"the taint{'' if len(keys) == 1 else 's'} {' and '.join(keys)}"


def _borne(node: Node) -> dict[str, str]:
    """What the node bears, what that comes to, and how a person takes it off."""
    keys = taints_of(node)
    is_one = len(keys) == 1
    stays = "the taint stays" if is_one else "the taints stay"
    if any(each.key in _OURS and each.effect != "PreferNoSchedule" for each in node.spec.taints):
        stays += f", which {'keeps' if is_one else 'keep'} new pods away"
    if names.DRAINING in keys:
        stays = f"{node.name} is neither emptied nor deleted, and {stays}"
    elif names.DELETION_TIME in keys:
        stays = f"{node.name} is not deleted, and {stays}"
    return {
        "node": node.name,
        "taints": _taint_words(node),
        "undone": stays,
        "untaint": f"kubectl taint nodes {node.name} {' '.join(f'{key}-' for key in keys)}",
        "off": "the taint" if is_one else "the taints",
    }
