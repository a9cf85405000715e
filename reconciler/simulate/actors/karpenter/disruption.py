"""Owner of Karpenter's disruption loop, which tries each method in turn.

The loop runs at an interval; after a run without result over many nodes, the interval is longer. A consolidation is
validated a second time before its execution, and until then no other disruption starts.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from reconciler.model import names
from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Ref
from reconciler.plan.karpenter.budgets import allowed_at_once
from reconciler.plan.karpenter.node_fate import Surveyed, held_by, moving_pods
from reconciler.protocol.preconditions import Object
from reconciler.simulate.actors.karpenter.batch_window import (
    Purchasing,
    counted,
    displaced,
    fresh,
    needs_another_place,
)
from reconciler.simulate.actors.karpenter.cloud import joined, matches_demands, one_of
from reconciler.simulate.actors.karpenter.cluster_state import Knowledge, NodePool
from reconciler.simulate.actors.karpenter.lifecycle import BY
from reconciler.simulate.actors.karpenter.machines import (
    AGAIN_MS,
    DISRUPTED,
    DISRUPTION,
    DRIFTED,
    EXISTING,
    INITIALIZED,
    VALIDATED_AFTER_MS,
    new_condition,
    node_name_of,
    since,
)
from reconciler.simulate.actors.karpenter.scheduling_round import (
    NewNodeClaim,
    SchedulingExemptions,
    Sold,
    look_without,
)
from reconciler.simulate.actors.karpenter.termination import set_disrupted
from reconciler.simulate.objects import annotations_of, is_leaving, labels_of, ref_of, says, without_condition

# --- Candidates: ready nodes that are not being removed, without blocking pods.

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


# --- The loop.

_SOON_MS = 1_000
_AT_LATEST_MS = 300_000
_PATIENCE_PER_NODE_MS = 250


class DisruptionController:
    """Runs while any NodePool could lose nodes."""

    def __init__(self, known: Knowledge, purchasing: Purchasing) -> None:
        self._known = known
        self._engine = known.stage.engine
        self.commands = DisruptionCommands(known, purchasing)
        self._replace_at = Instant(0)
        self._is_asleep = True
        self._consolidate_at = Instant(0)

    def changed(self) -> None:
        """Called when claims or NodePools have changed."""
        if self._is_asleep and self._could_act():
            self._is_asleep = False
            now = self._engine.now
            self._next(AGAIN_MS - now % AGAIN_MS)

    def _round(self) -> None:
        if self._known.machines.unlaunched:
            self._next(_SOON_MS)
            return
        if command := emptied(self._known):
            self._validate_later(command)
            return
        is_begun = self._replace_drifted()
        if not is_begun and self._engine.now >= self._consolidate_at:
            if command := consolidated(self._known):
                self._validate_later(command)
                return
            self._consolidate_at = self._later(len(self._known.machines.claims))
        self._next(_SOON_MS if is_begun else AGAIN_MS)

    def _could_act(self) -> bool:
        """A cheap check."""
        known = self._known
        return bool(known.machines.drifted) or any(each.consolidates(known.now) for each in known.pools.in_order())

    def _replace_drifted(self) -> bool:
        """Returns whether a replacement was started."""
        many = len(self._known.machines.drifted)
        if not many or self._engine.now < self._replace_at:
            return False
        of_fixed_size = renewed(self._known)
        for command in of_fixed_size:
            self.commands.start(command)
        is_begun = bool(of_fixed_size)
        for command in () if is_begun else drifted(self._known):
            self.commands.start(command)
            is_begun = True
            if command.replacements:
                break  # the next candidate is evaluated after the launch
        if not is_begun:
            self._replace_at = self._later(many)
        return is_begun

    def _later(self, nodes: int) -> Instant:
        """With many nodes to evaluate, a run takes longer, so runs are less frequent."""
        return Instant(self._engine.now + min(_AT_LATEST_MS, max(AGAIN_MS, _PATIENCE_PER_NODE_MS * nodes)))

    def _validate_later(self, command: Command) -> None:
        self._engine.after(VALIDATED_AFTER_MS, "validate a consolidation", lambda: self._validate(command))

    def _validate(self, command: Command) -> None:
        if not self._known.machines.unlaunched and (valid := still_holds(self._known, command)) is not None:
            self.commands.start(valid)
        self._next(AGAIN_MS)

    def _next(self, delay_ms: int) -> None:
        if not self._could_act():
            self._is_asleep = True
            return
        self._engine.after(delay_ms, "look for nodes to disrupt", self._round)


# --- Karpenter's disruption methods: emptiness, drift, and consolidation.

EMPTY, UNDERUTILIZED = "Empty", "Underutilized"
_MOST_AT_ONCE = 100
_SPOT, _ON_DEMAND = "spot", "on-demand"


def emptied(known: Knowledge) -> Command | None:
    """All empty nodes that budgets allow, at once."""
    budgets = left_in_budgets(known, EMPTY)
    if not budgets:
        return None
    bare = consolidatable(known, budgets, lambda pool: known.machines.without(known.pods.busy.keys(), pool.name))
    empty = [each for each in bare if not each.pods]
    chosen = tuple(_within(sorted(empty, key=lambda each: each.saves_most), budgets))
    return Command(EMPTY, chosen) if chosen else None


def drifted(known: Knowledge) -> Iterator[Command]:
    """Drifted nodes one at a time, empty ones first, each with its replacements."""
    budgets = left_in_budgets(known, DRIFTED)
    pools = [pool for pool in known.pools.in_order() if pool.name in budgets and pool.replicas is None]
    claims = [(claim, pool) for pool in pools for claim in known.machines.drifted_of(pool.name)]
    around = _around(known)
    for claim, pool in sorted(claims, key=lambda each: _disruption_order(known, each[0])):
        if budgets[pool.name] <= 0 or (found := candidate(known, claim, pool, eventual=True)) is None:
            continue
        if (command := _moved(known, DRIFTED, (found,), around)) is not None:
            budgets[pool.name] -= 1
            yield command
            around = _around(known)


def renewed(known: Knowledge) -> list[Command]:
    """Drifted nodes of NodePools with fixed size, each with a replacement regardless of its pods."""
    budgets = left_in_budgets(known, DRIFTED)
    commands: list[Command] = []
    for pool in known.pools.in_order():
        if pool.replicas is None or pool.name not in budgets:
            continue
        running, replaced = counted(known, pool)
        if len(running) + replaced > pool.replicas:
            continue
        claims = sorted(known.machines.drifted_of(pool.name), key=lambda each: _disruption_order(known, each))
        candidates = [candidate(known, each, pool, eventual=True) for each in claims]
        leaving = [each for each in candidates if each is not None][: budgets[pool.name]]
        replacements = fresh(known, pool, len(leaving))
        commands += [Command(DRIFTED, (each,), (new,)) for each, new in zip(leaving, replacements, strict=False)]
    return commands


def _disruption_order(known: Knowledge, claim: Object) -> tuple[bool, int, str]:
    """Empty nodes first, then by time of drift."""
    pods = known.pods.on(node_name_of(claim))
    return any(pod.is_reschedulable for pod in pods), since(claim, DRIFTED), claim["metadata"]["name"]


def consolidated(known: Knowledge) -> Command | None:
    """Several nodes, or else one, whose pods fit on remaining nodes, or on one cheaper node."""
    budgets = left_in_budgets(known, UNDERUTILIZED)
    if not budgets:
        return None
    candidates = consolidatable(known, budgets, lambda pool: _underutilized(known, pool))
    found = [each for each in candidates if each.pods]
    found.sort(key=lambda each: each.saves_most)
    several = tuple(_within(found, dict(budgets)))[:_MOST_AT_ONCE]
    return _several(known, several) or _single(known, found)


def still_holds(known: Knowledge, command: Command) -> Command | None:
    """The part of the command that is still valid."""
    budgets = left_in_budgets(known, command.reason)
    requested = {each.name for each in command.candidates}
    now = {each.name: each for each in consolidatable(known, budgets, lambda pool: _claims(known, pool, requested))}
    wanted = [now[each.name] for each in command.candidates if each.name in now]
    chosen = tuple(_within(wanted, budgets))
    if command.reason == EMPTY:
        chosen = tuple(each for each in chosen if not each.pods)
        return msgspec.structs.replace(command, candidates=chosen) if chosen else None
    if len(chosen) < len(command.candidates):
        return None
    again = _cheaper(known, chosen)
    return again if again is not None and len(again.replacements) == len(command.replacements) else None


def _claims(known: Knowledge, pool: NodePool, requested: Collection[str]) -> list[Object]:
    return [each for each in known.machines.of_pool(pool.name) if each["metadata"]["name"] in requested]


def _underutilized(known: Knowledge, pool: NodePool) -> Iterable[Object]:
    return () if pool.policy == "WhenEmpty" else known.machines.of_pool(pool.name)


def _within(candidates: Sequence[Candidate], budgets: dict[str, int]) -> Iterator[Candidate]:
    for each in candidates:
        if budgets.get(each.pool.name, 0) > 0:
            budgets[each.pool.name] -= 1
            yield each


def _several(known: Knowledge, candidates: Sequence[Candidate]) -> Command | None:
    """The longest prefix of candidates that can be removed together, by bisection."""
    least, most = 1, len(candidates) - 1
    best: Command | None = None
    while least <= most:
        middle = (least + most) // 2
        chosen = tuple(candidates[: middle + 1])
        command = _cheaper(known, chosen)
        if command is not None and command.replacements:
            command = _without_same_type(command)
        if command is None:
            most = middle - 1
        else:
            best, least = command, middle + 1
    return best


def _single(known: Knowledge, candidates: Sequence[Candidate]) -> Command | None:
    return next((command for each in candidates if (command := _cheaper(known, (each,))) is not None), None)


def _cheaper(known: Knowledge, candidates: tuple[Candidate, ...]) -> Command | None:
    command = _moved(known, UNDERUTILIZED, candidates)
    if command is None or not command.replacements:
        return command
    if len(command.replacements) > 1:
        return None
    (opened,) = command.replacements
    capacity_types = opened.demands.get(names.CAPACITY_TYPE)
    is_spot = all(labels_of(each.node).get(names.CAPACITY_TYPE) == _SPOT for each in candidates)
    if is_spot and (capacity_types is None or capacity_types.has(_SPOT)):
        return None  # spot-to-spot consolidation is off by default
    price = sum(each.micro_dollars_per_hour for each in candidates)
    if not _keep_below(opened, price):
        return None
    if capacity_types is not None and capacity_types.has(_SPOT) and capacity_types.has(_ON_DEMAND):
        opened.demands = joined(opened.demands, {names.CAPACITY_TYPE: one_of((_SPOT,))})
    return command


def _without_same_type(command: Command) -> Command | None:
    """Several nodes are not replaced by a node of one of their types: that node could stay instead."""
    (opened,) = command.replacements
    types = {labels_of(each.node).get(names.INSTANCE_TYPE): each.micro_dollars_per_hour for each in command.candidates}
    same = [types[each.machine.name] for each in opened.sold if each.machine.name in types]
    return command if not same or _keep_below(opened, min(same)) else None


def _keep_below(opened: NewNodeClaim, price: int) -> bool:
    """Keeps only instance types whose maximum price is lower; returns whether any remain."""
    opened.sold = tuple(each for each in opened.sold if _dearest(each, opened) < price)
    return bool(opened.sold) and opened.pool.is_varied(each.machine for each in opened.sold)


def _dearest(sold: Sold, opened: NewNodeClaim) -> int:
    """Of the capacity type that would be launched."""
    offered = [each for each in sold.offerings if matches_demands(each, opened.demands)]
    for capacity_type in ("reserved", _SPOT, _ON_DEMAND):
        prices = [each.micro_dollars_per_hour for each in offered if each.capacity_type == capacity_type]
        if prices:
            return max(prices)
    return max(each.micro_dollars_per_hour for each in offered)


class _Around(msgspec.Struct, frozen=True):
    """Pods that need a node besides the moved ones."""

    waiting: list[Pod]
    leaving: list[Pod]
    terms: SchedulingExemptions


def _around(known: Knowledge) -> _Around:
    waiting, leaving = known.pods.waiting_read(), displaced(known)
    uids = (frozenset(pod.metadata.uid for pod in pods) for pods in (waiting, leaving))
    return _Around(waiting, leaving, SchedulingExemptions(*uids))


def _moved(
    known: Knowledge, reason: str, candidates: tuple[Candidate, ...], around: _Around | None = None
) -> Command | None:
    """Where pods would run without these nodes; None if some would fit nowhere."""
    moving = [pod for each in candidates for pod in each.pods if needs_another_place(known, pod)]
    leaving = {each.name for each in candidates}
    if not moving:
        return Command(reason, candidates)
    around = around or _around(known)
    scheduling_result = look_without(known, [*around.waiting, *moving, *around.leaving], leaving, around.terms)
    return (
        Command(reason, candidates, scheduling_result.opened, scheduling_result.claims)
        if scheduling_result is not None
        else None
    )
