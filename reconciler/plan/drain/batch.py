"""Selection of the candidates that begin to drain: a batch, whose nodes are all tainted or none.

Theory of operation. One write can fail while another succeeds, and there are no transactions, so a batch spans
plans. The batch is remembered before its taints are written, and no pod is evicted until every node of the batch was
observed with the taint. Missing taints are written again. If a taint is still missing after half a minute, the batch
is torn: its taints are removed until none is observed, and nodes that could not be tainted back off. No other batch
begins meanwhile. If the cluster is observed late, a taint may exist that is not observed yet: a batch stays torn
until the observation is newer than the last write of the batch. Otherwise its nodes would drain beside the next
batch, more than a limit allows. Nodes that a guard holds are not part of the batch: splitting a drain into several
batches is the purpose of a guard.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from reconciler.model.desired import Declared
from reconciler.model.instant import Instant, later
from reconciler.model.plan.decision import Decision, Facts, Hold, Reason, Ref, pod_ref
from reconciler.model.plan.drain_memory import Batch, InVain, Load
from reconciler.model.policy.guards import ChangeGuard
from reconciler.plan.drain import marks
from reconciler.plan.drain.backoff import is_too_few, load_of, rests_until
from reconciler.plan.drain.candidates import EligibilityContext, cluster_at_minimum
from reconciler.plan.drain.codes.candidacy import (
    AwaitsBatch,
    AwaitsOthersOfGang,
    DrainedInVain,
    DrainWaitsForCompletion,
    DrainWaitsForDemand,
    DrainWouldBeInVain,
    GuardAllowsPerPlan,
    NoDrainSlot,
    PoolKeepsNodes,
    PoolKeepsNodesBesideLeaving,
    WindowClosed,
)
from reconciler.plan.drain.codes.emptying import (
    BEGINS,
    BatchCompleted,
    BatchSettles,
    BatchTorn,
    Drained,
    EmptyNodeRemoved,
)
from reconciler.plan.drain.context import DrainContext, DrainNode
from reconciler.plan.drain.gang_placement import GangNodes, Members
from reconciler.plan.drain.limits import Slots
from reconciler.plan.drain.placement import Rehomed
from reconciler.plan.drain.timers import in_drain_order, is_due, since, wait
from reconciler.plan.guards.admission import is_elsewhere
from reconciler.plan.guards.ledger import FIELDS, DisruptionLedger, DisruptionSums, Roll, limit_of
from reconciler.plan.guards.removals import GuardContext, taken
from reconciler.plan.nodes.ownership import opt_out
from reconciler.plan.windows import closed

OBSERVED_WITHIN_MS = 30_000
_MOST_NAMED = 3
_READ_WITHIN_MS = 300_000  # nodes observed later than this count as unread, and nothing is planned


class Settling(msgspec.Struct):
    """State of the last batch, and the decisions about the batch."""

    batch: Batch | None = None  # the batch to remember
    nodes: frozenset[str] = frozenset()  # nodes whose pods are not evicted yet
    decisions: tuple[Decision, ...] = ()
    untainted: tuple[tuple[str, str], ...] = ()  # name and uid of nodes that could not be tainted
    wake_at: Instant | None = None


def settle(context: DrainContext) -> Settling:
    """Continue the last batch: all its nodes are tainted, or missing taints are written, or the batch is torn."""
    batch = context.memory.batch
    if batch is None:
        return Settling()
    by_uid = {each.node.metadata.uid: each for each in context.drain_nodes}
    there = [by_uid[uid] for _, uid in batch.nodes if uid in by_uid]
    tainted = [each for each in there if each.draining is not None]
    names, seen = frozenset(name for name, _ in batch.nodes), {each.node.metadata.uid for each in tainted}
    missing = tuple((name, uid) for name, uid in batch.nodes if uid not in seen)
    if batch.torn_at is not None:
        # Nodes that reconciler may not write to must not block all later batches.
        is_over = all(context.is_others(each) for each in tainted) and _is_observed_by_now(context, batch.torn_at)
        return Settling() if is_over else _torn(context, batch, tainted, names)
    if not missing:
        return Settling()
    ends = later(batch.at, OBSERVED_WITHIN_MS)
    is_ours = not any(context.is_others(each) or opt_out(each.node, context.now) for each in there)
    if context.now < ends and len(there) == len(batch.nodes) and is_ours:
        again = [each for each in there if each.draining is None]
        decisions = tuple(_again(context, batch, again))
        held = (context.act(each, Hold(ends), each.reason(BatchSettles(node=each.name))) for each in tainted)
        return Settling(batch, names, (*decisions, *held), wake_at=ends)
    torn = msgspec.structs.replace(batch, torn_at=context.now)
    settling = _torn(context, torn, tainted, names)
    settling.untainted = tuple(each for each in missing if each[1] in by_uid)
    return settling


def _is_observed_by_now(context: DrainContext, at: Instant) -> bool:
    """Whether the observation includes everything that was written until `at`."""
    return context.inputs.observed.seen_at > at or context.now > at + _READ_WITHIN_MS


def _again(context: DrainContext, batch: Batch, missing: Sequence[DrainNode]) -> Iterator[Decision]:
    others = len(batch.nodes) - 1
    for each in missing:
        if not context.is_claimed(each.ref):
            reason = each.reason(BatchCompleted(node=each.name, others=others))
            yield context.act(each, marks.hard(batch.at, each.node), reason)


def _torn(context: DrainContext, batch: Batch, tainted: Sequence[DrainNode], names: frozenset[str]) -> Settling:
    missing = tuple(sorted(names - {each.name for each in tainted})[:_MOST_NAMED])
    decisions = tuple(
        context.act(each, each.draining.off, each.reason(BatchTorn(missing=missing, node=each.name)))
        for each in tainted
        if each.draining is not None and not context.is_claimed(each.ref) and not context.is_others(each)
    )
    ends = later(batch.torn_at, _READ_WITHIN_MS + 1) if batch.torn_at is not None else None
    return Settling(batch, names, decisions, wake_at=ends)


class BatchSelection:
    """What is left of each limit while a batch is selected. Mutable."""

    def __init__(self, eligibility: EligibilityContext, rehomed: Rehomed, due: Iterable[DrainNode]) -> None:
        """`due`: candidates whose timer has expired."""
        self._due = Counter([each.pool for each in due if each.is_ready and not eligibility.context.is_empty(each)])
        self._eligibility, self._context, self._rehomed = eligibility, eligibility.context, rehomed
        self._slots, self._room = Slots(eligibility.context), PlanRoom(eligibility.context)
        self._taken: dict[str, int] = {}  # number of nodes that begin to drain in this plan, by pool
        self._wanting = {each.pool for each in eligibility.context.draft.capacity.lacking("demand")}
        self.found: dict[str, Decision] = {}  # by name
        self._waiting: dict[str, int] = {}  # candidates without a slot, by policy

    def decide(self, crew: GangNodes, is_settling: bool) -> None:
        """Decide whether a group of due candidates begins to drain, or why the group waits."""
        taken: list[DrainNode] = []
        for each in crew.nodes:
            held = self._held(each, is_settling) or self._over(crew, each)
            if held is not None:
                for other in taken:
                    self._take(other, -1)
                self.found[each.name] = held
                for other in crew.nodes:
                    if other is not each:
                        self.found[other.name] = self._awaits(other, each.name, held)
                return
            self._take(each, 1)
            taken.append(each)
        self._eligibility.worth.take(crew.nodes)
        self._room.take(crew.nodes)
        self.found |= {each.name: self._goes(each) for each in crew.nodes}

    def _over(self, crew: GangNodes, drain_node: DrainNode) -> Decision | None:
        """Limit of a guard for one plan, as a hold. A group that exceeds the limit alone passes if the plan takes
        nothing else: then the guard itself holds the group.
        """
        limit = self._room.why_none(crew.nodes)
        if limit is None or (self._room.is_empty and self._room.why_none(crew.nodes, alone=True)):
            return None
        return self._context.act(drain_node, Hold(), _no_slot(drain_node, limit))

    def is_too_much(self, crew: GangNodes) -> bool:
        """Whether the group alone exceeds what guards allow in one plan."""
        return self._room.why_none(crew.nodes, alone=True) is not None

    def wait(self, crew: GangNodes, held: Mapping[str, Decision]) -> None:
        """Hold a group because some of its nodes are held."""
        first = next(iter(held))
        self.found |= held
        for each in crew.nodes:
            if each.name not in held:
                self.found[each.name] = self._awaits(each, first, held[first])

    def completes_first(self, drain_node: DrainNode) -> Decision:
        """Hold on a node until its pods that may not be evicted have completed."""
        pods = self._context.completing[drain_node.name]
        facts = DrainWaitsForCompletion(node=drain_node.name, pods=len(pods), pod=pod_ref(pods[0]))
        return self._context.act(drain_node, Hold(), drain_node.reason(facts))

    def _goes(self, drain_node: DrainNode) -> Decision:
        code = EmptyNodeRemoved if self._context.is_empty(drain_node) else Drained
        reason = drain_node.reason(code(node=drain_node.name, since=since(self._context, drain_node)))
        return self._context.act(drain_node, marks.hard(self._context.now, drain_node.node), reason)

    def _take(self, drain_node: DrainNode, count: int) -> None:
        """Take a slot for a node, or give the slot back."""
        self._slots.take(drain_node, count)
        if count > 0:
            self._eligibility.cluster_min.take(drain_node.node)
        else:
            self._eligibility.cluster_min.give(drain_node.node)
        self._taken[drain_node.pool] = self._taken.get(drain_node.pool, 0) + count

    def not_yet(self, drain_node: DrainNode) -> Decision:
        """Hold on a node until its timer has expired."""
        return wait(self._context, drain_node, self._rehomed.together[drain_node.name])

    def _awaits(self, drain_node: DrainNode, other: str, held: Decision) -> Decision:
        """Hold a node because another node of its group is held."""
        until = held.act.until if isinstance(held.act, Hold) else None
        reason = drain_node.reason(AwaitsOthersOfGang(node=drain_node.name, other=other, why=held.reason))
        return self._context.act(drain_node, Hold(until), reason)

    def _held(self, drain_node: DrainNode, is_settling: bool) -> Decision | None:
        context, policy = self._context, drain_node.policy
        if shut := closed(policy.spec.windows, context.now):
            facts = WindowClosed(policy=drain_node.policy_ref, time=shut.until, node=drain_node.name)
            return context.act(drain_node, Hold(shut.until), drain_node.reason(facts, "windows"))
        vain = self._eligibility.in_vain.get(drain_node.pool)
        # An unready node is of no use, and no pod is moved off an empty node, so neither can be drained in vain.
        if (
            vain is not None
            and drain_node.is_ready
            and not context.is_empty(drain_node)
            and (held := self._in_vain(drain_node, vain))
        ):
            return held
        if drain_node.pool in self._wanting:
            return context.act(
                drain_node, Hold(), drain_node.reason(DrainWaitsForDemand(pool=drain_node.pool, node=drain_node.name))
            )
        if is_settling:
            return context.act(drain_node, Hold(), drain_node.reason(AwaitsBatch(node=drain_node.name)))
        if limit := self._slots.why_none(drain_node) or self._pool_limit(drain_node):
            self._waiting[policy.name] = self._waiting.get(policy.name, 0) + 1
            reason = context.said.again(drain_node.name, "waits", (policy, limit), lambda: _no_slot(drain_node, limit))
            return context.act(drain_node, Hold(), reason)
        lacking = cluster_at_minimum(self._eligibility, drain_node)
        return context.act(drain_node, Hold(), lacking) if lacking else None

    def _in_vain(self, drain_node: DrainNode, vain: InVain) -> Decision | None:
        if drain_node.pool in self._eligibility.resting:
            until = rests_until(vain)
            rests = DrainedInVain(at=vain.at, times=vain.times, pool=drain_node.pool, node=drain_node.name, time=until)
            return self._context.act(drain_node, Hold(until), drain_node.reason(rests))
        load = self._eligibility.no_better.get(drain_node.pool)
        if load is None or not is_too_few(vain, self._at_once(drain_node)):
            return None
        facts = DrainWouldBeInVain(
            at=vain.at,
            times=vain.times,
            pool=drain_node.pool,
            pods=load.pods,
            nodes=load.busy_nodes,
            node=drain_node.name,
        )
        return self._context.act(drain_node, Hold(), drain_node.reason(facts))

    def _at_once(self, drain_node: DrainNode) -> int:
        """The most busy nodes of the pool that could begin to drain together."""
        budget = self._eligibility.budgets.get(drain_node.pool)
        most = min(self._due[drain_node.pool], drain_node.policy.spec.max_drain_parallelism)
        return most if budget is None else min(most, budget.left(drain_node))

    @property
    def loads(self) -> dict[str, Load]:
        """Load of the pools whose busy nodes begin to drain."""
        drain_nodes = (
            self._context.by_name[name] for name, each in self.found.items() if type(each.reason.facts) in BEGINS
        )
        first = {each.pool: each for each in drain_nodes if each.is_ready and not self._context.is_empty(each)}
        return {pool: load_of(self._context, pool, self._at_once(each)) for pool, each in sorted(first.items())}

    def _pool_limit(self, drain_node: DrainNode) -> Facts | None:
        budget = self._eligibility.budgets.get(drain_node.pool)
        if budget is None or self._taken.get(drain_node.pool, 0) < budget.left(drain_node):
            return None
        by, size, floor = budget.provisioner, budget.size, budget.floor_for(drain_node)
        if not budget.leaving:
            return PoolKeepsNodes(provisioner=by, size=size, pool=drain_node.pool, floor=floor)
        return PoolKeepsNodesBesideLeaving(
            provisioner=by, size=size, pool=drain_node.pool, leaving=budget.leaving, floor=floor
        )

    def throttled(self) -> Iterator[Decision]:
        """Holds on policies whose candidates wait because both limits are reached."""
        for policy in self._context.policies:
            waiting = self._waiting.get(policy.name, 0)
            facts = self._slots.both_taken(policy, waiting) if waiting else None
            if facts is not None:
                yield self._context.hold(policy, Reason(facts, policy.origin("spec.maxScaleDownParallelism")))


def _no_slot(drain_node: DrainNode, limit: Facts) -> Reason:
    return drain_node.reason(NoDrainSlot(node=drain_node.name, limit=Reason(limit)))


class Began(msgspec.Struct, frozen=True):
    """Decisions about candidates, and the load of pools whose busy nodes begin to drain."""

    decisions: tuple[Decision, ...] = ()
    loads: Mapping[str, Load] = {}


def begin(eligibility: EligibilityContext, rehomed: Rehomed, members: Members, is_settling: bool) -> Began:
    """Decide about every candidate with a timer. Decisions are in the order of the search."""
    late: list[tuple[GangNodes, list[DrainNode]]] = []
    held: list[tuple[GangNodes, list[DrainNode]]] = []
    due: list[GangNodes] = []
    for crew in _crews(eligibility.context, rehomed):
        if early := [each for each in crew.nodes if not is_due(eligibility.context, each)]:
            late.append((crew, early))
        elif waiting := [each for each in crew.nodes if each.name in eligibility.context.completing]:
            held.append((crew, waiting))
        else:
            due.append(crew)
    beginning = BatchSelection(eligibility, rehomed, (each for crew in due for each in crew.nodes))
    for crew, early in late:
        beginning.wait(crew, {each.name: beginning.not_yet(each) for each in early})
    for crew, waiting in held:
        beginning.wait(crew, {each.name: beginning.completes_first(each) for each in waiting})
    # Empty nodes come first, because no pod is moved. Nodes that guards let no plan take come after all nodes that
    # guards allow, and report-only nodes come last.
    turns: dict[int, list[GangNodes]] = {0: [], 1: [], 2: [], 3: []}
    for crew in due:
        is_told = eligibility.context.is_report_only(crew.nodes[0])
        is_busy = not all(map(eligibility.context.is_empty, crew.nodes))
        turns[3 if is_told else 2 if beginning.is_too_much(crew) else int(is_busy)].append(crew)
    for crews in turns.values():
        for crew in in_drain_order(eligibility, members, crews):
            beginning.decide(crew, is_settling)
    found = beginning.found
    decisions = (*(found[name] for name in rehomed.together if name in found), *beginning.throttled())
    return Began(decisions, beginning.loads)


def _crews(context: DrainContext, rehomed: Rehomed) -> Iterator[GangNodes]:
    """Groups of candidates: single nodes, and nodes that drain together."""
    for name in rehomed.together:
        crew = rehomed.crews.get(name) or GangNodes((context.by_name[name],), ())
        # A node without a timer gets its timer first, and a node with an action of another planner waits for the next
        # plan.
        is_candidate = [each.candidate_since is not None and not context.is_taken(each) for each in crew.nodes]
        if crew.nodes[0].name == name and all(is_candidate):
            yield crew


# --- What guards let one plan take, while a batch is selected; other nodes wait for the next plan.
#
# A plan over a limit of `perPlan` is held as a whole (plan/guards/tally.py), and every later plan would be held again.
# Nodes can begin to drain in several plans, so a plan begins only as many as the guards allow. A group that exceeds a
# limit alone is left to the guard, which reports the group to people. Such a group begins alone, because the guard
# would hold all other nodes of the plan too.


class PlanRoom:
    """Remaining room of one plan in the limits of guards. Mutable."""

    def __init__(self, context: DrainContext) -> None:
        inputs = context.inputs
        guards = [each for each in inputs.desired.guards if not each.spec.suspend and not is_elsewhere(inputs, each)]
        self._stage, self._roll = GuardContext(context.fleet, context.inputs), Roll(context.fleet)
        self._sums: list[tuple[Declared[ChangeGuard], DisruptionSums]] = [
            (each, DisruptionSums(self._roll)) for each in guards
        ]
        self.is_empty = True  # no disruption so far
        if guards:
            self._count_others(context)

    def _count_others(self, context: DrainContext) -> None:
        """Count what earlier planners take."""
        ledger = DisruptionLedger(
            self._stage, context.inputs.memory.marks, frozenset(each.name for each in context.inputs.desired.pools)
        )
        for decision in context.draft.claims:
            for one in taken(self._stage, decision):
                if one.weighs and not ledger.counts_already(one.mark):
                    self.is_empty = False
                    for guard, sums in self._sums:
                        if _guards(guard, one.mark.pool):
                            sums.add(one.mark)

    def why_none(self, nodes: Sequence[DrainNode], *, alone: bool = False) -> GuardAllowsPerPlan | None:
        """The limit that the nodes would exceed beside the plan so far, or alone; None if there is room."""
        if not self._sums:
            return None
        marks = [self._stage.mark(each.node, goes=True) for each in nodes]
        for guard, sums in self._sums:
            so_far = DisruptionSums(self._roll) if alone else sums
            over = so_far.plus(each for each in marks if _guards(guard, each.pool)).over(guard.spec.per_plan)
            if over:
                most, field = limit_of(guard.spec.per_plan, over[0]) or 0, FIELDS[over[0]]
                return GuardAllowsPerPlan(guard=Ref("ChangeGuard", "", guard.name), most=most, field=field)
        return None

    def take(self, nodes: Sequence[DrainNode]) -> None:
        """Count nodes that begin to drain."""
        self.is_empty = False
        for guard, sums in self._sums:
            for each in nodes:
                if _guards(guard, each.pool):
                    sums.add(self._stage.mark(each.node, goes=True))


def _guards(guard: Declared[ChangeGuard], pool: str) -> bool:
    return bool({"*", pool} & set(guard.spec.pool_names))
