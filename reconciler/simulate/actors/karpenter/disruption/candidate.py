"""Disruption candidates: ready nodes that are not being removed, without blocking pods."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from reconciler.model import names
from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.decision import Ref
from reconciler.plan.karpenter.budgets import allowed_at_once
from reconciler.plan.karpenter.node_fate import Surveyed, held_by, moving_pods
from reconciler.protocol.preconditions import Object
from reconciler.simulate.actors.karpenter.cluster_state import Knowledge, NodePool
from reconciler.simulate.actors.karpenter.lifecycle import BY
from reconciler.simulate.actors.karpenter.machines import (
    DISRUPTED,
    DISRUPTION,
    EXISTING,
    INITIALIZED,
    new_condition,
    node_name_of,
    since,
)
from reconciler.simulate.actors.karpenter.provisioning.batch_window import Purchasing
from reconciler.simulate.actors.karpenter.provisioning.scheduling_round import NewNodeClaim
from reconciler.simulate.actors.karpenter.termination import set_disrupted
from reconciler.simulate.objects import annotations_of, is_leaving, labels_of, ref_of, says, without_condition

_UNLIMITED = 10**9


class Candidate(msgspec.Struct, frozen=True):
    name: str  # of its NodeClaim
    claim: Object
    node: Object
    pool: NodePool
    pods: tuple[Pod, ...]  # that need rescheduling
    micro_dollars_per_hour: int

    @property
    def saves_most(self) -> tuple[float, str]:
        """Sort key: highest price per disruption cost first."""
        return -self.micro_dollars_per_hour / (1 + len(self.pods)), self.name


def candidate(known: Knowledge, claim: Object, pool: NodePool, eventual: bool = False) -> Candidate | None:
    """None if the node may not be disrupted now; `eventual`: ignores blocking pods if their termination is bounded."""
    name, node = claim["metadata"]["name"], known.machines.node_of(claim)
    machines = known.machines
    if node is None or not says(claim, INITIALIZED):
        return None
    if machines.is_leaving(name) or machines.is_nominated(name, known.now):
        return None
    if annotations_of(node).get(names.DO_NOT_DISRUPT) == "true":
        return None
    there = node["metadata"]["name"]
    seen = known.world.read_object(("NodeClaim", "", name)), known.world.read_object(("Node", "", there))
    surveyed_node = Surveyed(*seen, known.pods.on(there), known.now)
    is_bounded = eventual and surveyed_node.bound_seconds is not None
    if not is_bounded and held_by(surveyed_node, known.budgets()):
        return None
    return Candidate(name, claim, node, pool, tuple(moving_pods(surveyed_node)), _price(known, node))


def left_in_budgets(known: Knowledge, reason: str) -> dict[str, int]:
    """How many more nodes each NodePool's budgets allow; NodePools with none are missing."""
    result: dict[str, int] = {}
    for pool in known.pools.in_order():
        if allowed_at_once(pool.spec, 1, reason, known.now) == 0:
            continue
        many = known.machines.total(pool.name, EXISTING)
        allowed = allowed_at_once(pool.spec, many, reason, known.now) if many else 0
        left = (_UNLIMITED if allowed is None else allowed) - known.machines.total(pool.name, DISRUPTED)
        if left > 0:
            result[pool.name] = left
    return result


def consolidatable(
    known: Knowledge, budgets: Mapping[str, int], among: Callable[[NodePool], Iterable[Object]]
) -> Iterator[Candidate]:
    """Candidates from `among`: NodePools with budget left, and no pod changes for consolidateAfter."""
    for pool in known.pools.in_order():
        quiet_ms = pool.consolidate_after_ms
        if quiet_ms is None or pool.replicas is not None or pool.name not in budgets:
            continue
        for claim in among(pool):
            if is_quiet(known, claim, quiet_ms) and (found := candidate(known, claim, pool)) is not None:
                yield found


def is_quiet(known: Knowledge, claim: Object, quiet_ms: int) -> bool:
    """Whether no pod changed there for so long."""
    return known.now - last_stir(known, claim) >= quiet_ms


def last_stir(known: Knowledge, claim: Object) -> int:
    """When a pod last changed there, or else when the node was initialized."""
    return known.pods.stirred(node_name_of(claim)) or since(claim, INITIALIZED)


def _price(known: Knowledge, node: Object) -> int:
    labels = labels_of(node)
    machine = known.cloud.types.get(labels.get(names.INSTANCE_TYPE, ""))
    where = labels.get(names.ZONE, ""), labels.get(names.CAPACITY_TYPE, "")
    for each in machine.offerings if machine is not None else ():
        if (each.zone, each.capacity_type) == where:
            return each.micro_dollars_per_hour
    return 0


# --- Owner of running replacements: nodes that are removed once their replacements are ready.

_LEAST_PATIENCE_MS, _MOST_PATIENCE_MS, _PATIENCE_PER_COMMAND_MS = 600_000, 3_600_000, 80


class Command(msgspec.Struct, frozen=True):
    """Nodes to remove, and machines to launch before."""

    reason: str
    candidates: tuple[Candidate, ...]
    replacements: tuple[NewNodeClaim, ...] = ()
    nominated: tuple[str, ...] = ()  # claims of the nodes that receive the pods


class _UnderWay(msgspec.Struct):
    claims: tuple[str, ...]
    awaited: dict[str, None]


class DisruptionCommands:
    """Updated with changed claims."""

    def __init__(self, known: Knowledge, purchasing: Purchasing) -> None:
        self._known = known
        self._purchasing = purchasing
        self._under_way: dict[int, _UnderWay] = {}
        self._started = 0

    def start(self, command: Command) -> None:
        """Taints the nodes from now on."""
        known, now = self._known, self._known.now
        for each in command.candidates:
            set_disrupted(known.world, each.node)
            claim = known.machines.claims[each.name]
            known.world.set_condition(claim, new_condition(DISRUPTION, now, reason=command.reason), BY)
        bought = self._purchasing.buy(command.replacements)
        for name in command.nominated:
            known.machines.nominate(name, now)
        for each in command.candidates:
            known.machines.mark(each.name)
        patience = min(max(_LEAST_PATIENCE_MS, _PATIENCE_PER_COMMAND_MS * len(self._under_way)), _MOST_PATIENCE_MS)
        number = self._started = self._started + 1
        self._under_way[number] = _UnderWay(tuple(each.name for each in command.candidates), dict.fromkeys(bought))
        known.stage.engine.after(patience, "abandon a replacement", lambda: self._give_up(number))
        self._go_on(number)

    def changed(self, names: Sequence[str]) -> None:
        """Claims that became ready or were deleted."""
        touched = set(names)
        for number in [number for number, each in self._under_way.items() if touched & each.awaited.keys()]:
            self._go_on(number)

    def _go_on(self, number: int) -> None:
        under_way, machines = self._under_way[number], self._known.machines
        for name in list(under_way.awaited):
            claim = machines.claims.get(name)
            if claim is None or is_leaving(claim):
                self._give_up(number)
                return
            if says(claim, INITIALIZED):
                del under_way.awaited[name]
        if not under_way.awaited:
            del self._under_way[number]
            for name in under_way.claims:
                self._known.world.delete(Ref("NodeClaim", "", name), BY)

    def _give_up(self, number: int) -> None:
        under_way = self._under_way.pop(number, None)
        if under_way is None:
            return
        for name in under_way.claims:
            self._known.machines.unmark(name)
            claim = self._known.machines.claims.get(name)
            if claim is None or is_leaving(claim):
                continue
            self._known.world.edit(ref_of(claim), {"status": {"conditions": without_condition(claim, DISRUPTION)}}, BY)
            if (node := self._known.machines.node_of(claim)) is not None:
                set_disrupted(self._known.world, node, wanted=False)
