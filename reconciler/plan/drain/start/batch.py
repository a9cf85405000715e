"""Which candidates begin to be emptied: a batch, of which all nodes are tainted or none.

Theory of operation. One write can fail while another succeeds, and there are no transactions. So a batch spans plans:
it is remembered before its taints go out, and nothing is evicted until each of its nodes was seen with the taint. What
is not seen is asked for again; what can't be put on within half a minute tears the batch: the taints come off again,
until none is seen, and nodes that could not be tainted are left alone for a while. Meanwhile no other batch begins.
A taint that is not seen may be there all the same, on a cluster that is seen late: a batch is torn until what is seen
is newer than the last write of it, or its nodes would be drained beside the next ones, more than a limit allows. What a
guard holds is no part of the batch: that nodes go in several batches is what a guard is for.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from reconciler.model.instant import Instant, later
from reconciler.model.plan.action import Hold
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.drain_memory import Batch, InVain, Load
from reconciler.model.plan.reason import Facts, Reason
from reconciler.model.plan.refs import node_ref, pod_ref
from reconciler.plan.drain import marks
from reconciler.plan.drain.backoff.in_vain import is_too_few, load_of, rests_until
from reconciler.plan.drain.candidates import EligibilityContext, cluster_at_minimum, completing
from reconciler.plan.drain.codes.candidacy import (
    AwaitsBatch,
    AwaitsOthersOfGang,
    DrainedInVain,
    DrainWaitsForCompletion,
    DrainWaitsForDemand,
    DrainWouldBeInVain,
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
from reconciler.plan.drain.gangs.crews import GangNodes
from reconciler.plan.drain.gangs.members import Members
from reconciler.plan.drain.limits import Slots
from reconciler.plan.drain.placement import Rehomed
from reconciler.plan.drain.start.guard_room import PlanRoom
from reconciler.plan.drain.start.order import in_turn
from reconciler.plan.drain.timers import is_due, since, wait
from reconciler.plan.nodes.ownership import opt_out
from reconciler.plan.windows import closed

SEEN_WITHIN_MS = 30_000
_MOST_NAMED = 3
_READ_WITHIN_MS = 300_000  # nodes that are seen later than this count as unread, and nothing is planned


class Settling(msgspec.Struct):
    """What becomes of the batch that was begun last."""

    batch: Batch | None = None  # as it is to be remembered
    nodes: frozenset[str] = frozenset()  # from which nothing is evicted yet
    decisions: tuple[Decision, ...] = ()
    untainted: tuple[tuple[str, str], ...] = ()  # name and uid of nodes that could not be tainted
    wake_at: Instant | None = None


def settle(site: DrainContext) -> Settling:
    """All of its nodes are tainted, or it is torn."""
    batch = site.memory.batch
    if batch is None:
        return Settling()
    by_uid = {each.node.metadata.uid: each for each in site.seen}
    there = [by_uid[uid] for _, uid in batch.nodes if uid in by_uid]
    tainted = [each for each in there if each.draining is not None]
    names, seen = frozenset(name for name, _ in batch.nodes), {each.node.metadata.uid for each in tainted}
    missing = tuple((name, uid) for name, uid in batch.nodes if uid not in seen)
    if batch.torn_at is not None:
        # What nobody here may write to must not keep all others waiting.
        is_over = all(site.is_others(each) for each in tainted) and _would_be_seen(site, batch.torn_at)
        return Settling() if is_over else _torn(site, batch, tainted, names)
    if not missing:
        return Settling()
    ends = later(batch.at, SEEN_WITHIN_MS)
    is_ours = not any(site.is_others(each) or opt_out(each.node, site.now) for each in there)
    if site.now < ends and len(there) == len(batch.nodes) and is_ours:
        again = [each for each in there if each.draining is None]
        decisions = tuple(_again(site, batch, again))
        held = (site.act(each, Hold(ends), each.reason(BatchSettles(node=each.name))) for each in tainted)
        return Settling(batch, names, (*decisions, *held), wake_at=ends)
    torn = msgspec.structs.replace(batch, torn_at=site.now)
    found = _torn(site, torn, tainted, names)
    found.untainted = tuple(each for each in missing if each[1] in by_uid)
    return found


def _would_be_seen(site: DrainContext, at: Instant) -> bool:
    """Whether what was written until then is seen by now."""
    return site.inputs.observed.seen_at > at or site.now > at + _READ_WITHIN_MS


def _again(site: DrainContext, batch: Batch, missing: Sequence[DrainNode]) -> Iterator[Decision]:
    others = len(batch.nodes) - 1
    for each in missing:
        if not site.is_claimed(node_ref(each.node)):
            reason = each.reason(BatchCompleted(node=each.name, others=others))
            yield site.act(each, marks.hard(batch.at, each.node), reason)


def _torn(site: DrainContext, batch: Batch, tainted: Sequence[DrainNode], names: frozenset[str]) -> Settling:
    missing = tuple(sorted(names - {each.name for each in tainted})[:_MOST_NAMED])
    decisions = tuple(
        site.act(each, each.draining.off, each.reason(BatchTorn(missing=missing, node=each.name)))
        for each in tainted
        if each.draining is not None and not site.is_claimed(node_ref(each.node)) and not site.is_others(each)
    )
    ends = later(batch.torn_at, _READ_WITHIN_MS + 1) if batch.torn_at is not None else None
    return Settling(batch, names, decisions, wake_at=ends)


class Beginning:
    """Owner of what is left of each limit while a batch is put together."""

    def __init__(self, ground: EligibilityContext, rehomed: Rehomed, due: Iterable[DrainNode]) -> None:
        """`due`: candidates whose time has come."""
        self._due = Counter(each.pool for each in due if each.is_ready and not ground.site.is_empty(each))
        self._ground, self._site, self._rehomed = ground, ground.site, rehomed
        self._slots, self._room = Slots(ground.site), PlanRoom(ground.site)
        self._taken: dict[str, int] = {}  # nodes of a pool that begin to be drained in this plan
        self._wanting = {each.pool for each in ground.site.draft.missing if each.why == "demand"}
        self.found: dict[str, Decision] = {}  # by name
        self._waiting: dict[str, int] = {}  # candidates that find no slot, by policy

    def decide(self, crew: GangNodes, is_settling: bool) -> None:
        """Candidates that go together, or one, and whose time has come: they go, or why not yet."""
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
        self._ground.worth.take(crew.nodes)
        self._room.take(crew.nodes)
        self.found |= {each.name: self._goes(each) for each in crew.nodes}

    def _over(self, crew: GangNodes, seen: DrainNode) -> Decision | None:
        """What is too much for any plan is let through where it is all that the plan takes: the guard holds it then."""
        limit = self._room.why_none(crew.nodes)
        if limit is None or (self._room.is_empty and self._room.why_none(crew.nodes, alone=True)):
            return None
        return self._site.act(seen, Hold(), _no_slot(seen, limit))

    def is_too_much(self, crew: GangNodes) -> bool:
        """Whether guards let no plan take it."""
        return self._room.why_none(crew.nodes, alone=True) is not None

    def wait(self, crew: GangNodes) -> None:
        """For the time of one of them."""
        early = {each.name: self._not_yet(each) for each in crew.nodes if not is_due(self._site, each)}
        first = next(iter(early))
        self.found |= early
        for each in crew.nodes:
            if each.name not in early:
                self.found[each.name] = self._awaits(each, first, early[first])

    def await_completion(self, crew: GangNodes) -> None:
        """Of pods on some of them that nobody may evict."""
        held = {each.name: self._completes_first(each) for each in crew.nodes if completing(self._site, each.name)}
        first = next(iter(held))
        self.found |= held
        for each in crew.nodes:
            if each.name not in held:
                self.found[each.name] = self._awaits(each, first, held[first])

    def _completes_first(self, seen: DrainNode) -> Decision:
        pods = completing(self._site, seen.name)
        facts = DrainWaitsForCompletion(node=seen.name, pods=len(pods), pod=pod_ref(pods[0]))
        return self._site.act(seen, Hold(), seen.reason(facts))

    def _goes(self, seen: DrainNode) -> Decision:
        code = EmptyNodeRemoved if self._site.is_empty(seen) else Drained
        reason = seen.reason(code(node=seen.name, since=since(self._site, seen)))
        return self._site.act(seen, marks.hard(self._site.now, seen.node), reason)

    def _take(self, seen: DrainNode, count: int) -> None:
        """Or gives back what was taken."""
        self._slots.take(seen, count)
        if count > 0:
            self._ground.cluster_min.take(seen.node)
        else:
            self._ground.cluster_min.give(seen.node)
        self._taken[seen.pool] = self._taken.get(seen.pool, 0) + count

    def _not_yet(self, seen: DrainNode) -> Decision:
        return wait(self._site, seen, self._rehomed.together[seen.name])

    def _awaits(self, seen: DrainNode, other: str, held: Decision) -> Decision:
        """One that could go, but for another that goes with it."""
        until = held.act.until if isinstance(held.act, Hold) else None
        reason = seen.reason(AwaitsOthersOfGang(node=seen.name, other=other, why=held.reason))
        return self._site.act(seen, Hold(until), reason)

    def _held(self, seen: DrainNode, is_settling: bool) -> Decision | None:
        site, policy = self._site, seen.policy
        if shut := closed(policy.spec.windows, site.now):
            facts = WindowClosed(policy=seen.policy_ref, time=shut.until, node=seen.name)
            return site.act(seen, Hold(shut.until), seen.reason(facts, "windows"))
        vain = self._ground.in_vain.get(seen.pool)
        # One that is not ready is of no use where it is, and from an empty one no pod is moved.
        if vain is not None and seen.is_ready and not site.is_empty(seen) and (held := self._in_vain(seen, vain)):
            return held
        if seen.pool in self._wanting:
            return site.act(seen, Hold(), seen.reason(DrainWaitsForDemand(pool=seen.pool, node=seen.name)))
        if is_settling:
            return site.act(seen, Hold(), seen.reason(AwaitsBatch(node=seen.name)))
        if limit := self._slots.why_none(seen) or self._pool_limit(seen):
            self._waiting[policy.name] = self._waiting.get(policy.name, 0) + 1
            reason = site.said.again(seen.name, "waits", (policy, limit), lambda: _no_slot(seen, limit))
            return site.act(seen, Hold(), reason)
        lacking = cluster_at_minimum(self._ground, seen)
        return site.act(seen, Hold(), lacking) if lacking else None

    def _in_vain(self, seen: DrainNode, vain: InVain) -> Decision | None:
        if seen.pool in self._ground.resting:
            until = rests_until(vain)
            rests = DrainedInVain(at=vain.at, times=vain.times, pool=seen.pool, node=seen.name, time=until)
            return self._site.act(seen, Hold(until), seen.reason(rests))
        load = self._ground.no_better.get(seen.pool)
        if load is None or not is_too_few(vain, self._at_once(seen)):
            return None
        facts = DrainWouldBeInVain(
            at=vain.at, times=vain.times, pool=seen.pool, pods=load.pods, nodes=load.busy_nodes, node=seen.name
        )
        return self._site.act(seen, Hold(), seen.reason(facts))

    def _at_once(self, seen: DrainNode) -> int:
        """The most nodes with pods of its pool that could begin together."""
        budget = self._ground.budgets.get(seen.pool)
        most = min(self._due[seen.pool], seen.policy.spec.max_drain_parallelism)
        return most if budget is None else min(most, budget.left(seen))

    @property
    def loads(self) -> dict[str, Load]:
        """How pools are used of which nodes with pods begin."""
        going = (self._site.by_name[name] for name, each in self.found.items() if type(each.reason.facts) in BEGINS)
        first = {each.pool: each for each in going if each.is_ready and not self._site.is_empty(each)}
        return {pool: load_of(self._site, pool, self._at_once(each)) for pool, each in sorted(first.items())}

    def _pool_limit(self, seen: DrainNode) -> Facts | None:
        budget = self._ground.budgets.get(seen.pool)
        if budget is None or self._taken.get(seen.pool, 0) < budget.left(seen):
            return None
        by, size, floor = budget.provisioner, budget.size, budget.floor_for(seen)
        if not budget.leaving:
            return PoolKeepsNodes(provisioner=by, size=size, pool=seen.pool, floor=floor)
        return PoolKeepsNodesBesideLeaving(
            provisioner=by, size=size, pool=seen.pool, leaving=budget.leaving, floor=floor
        )

    def throttled(self) -> Iterator[Decision]:
        """Of policies that have candidates waiting, and both limits reached."""
        for policy in self._site.policies:
            waiting = self._waiting.get(policy.name, 0)
            facts = self._slots.both_taken(policy, waiting) if waiting else None
            if facts is not None:
                yield self._site.hold(policy, Reason(facts, policy.origin("spec.maxScaleDownParallelism")))


def _no_slot(seen: DrainNode, limit: Facts) -> Reason:
    return seen.reason(NoDrainSlot(node=seen.name, limit=Reason(limit)))


class Began(msgspec.Struct, frozen=True):
    """What is decided of candidates, and how pools are used of which nodes with pods begin."""

    decisions: tuple[Decision, ...] = ()
    loads: Mapping[str, Load] = {}


def begin(ground: EligibilityContext, rehomed: Rehomed, members: Members, is_settling: bool) -> Began:
    """Of every candidate that has a timer; told in the order in which they were found."""
    late: list[GangNodes] = []
    held: list[GangNodes] = []
    due: list[GangNodes] = []
    for crew in _crews(ground.site, rehomed):
        is_ready = all(is_due(ground.site, each) for each in crew.nodes)
        waits = any(completing(ground.site, each.name) for each in crew.nodes)
        (held if is_ready and waits else due if is_ready else late).append(crew)
    beginning = Beginning(ground, rehomed, (each for crew in due for each in crew.nodes))
    for crew in late:
        beginning.wait(crew)
    for crew in held:
        beginning.await_completion(crew)
    # Empty nodes come first, as no pod is moved. What guards let no plan take comes after all that they do, and what is
    # only told after all that is done.
    turns: dict[int, list[GangNodes]] = {0: [], 1: [], 2: [], 3: []}
    for crew in due:
        is_told = ground.site.is_only_told(crew.nodes[0])
        is_busy = not all(map(ground.site.is_empty, crew.nodes))
        turns[3 if is_told else 2 if beginning.is_too_much(crew) else int(is_busy)].append(crew)
    for crews in turns.values():
        for crew in in_turn(ground, members, crews):
            beginning.decide(crew, is_settling)
    found = beginning.found
    decisions = (*(found[name] for name in rehomed.together if name in found), *beginning.throttled())
    return Began(decisions, beginning.loads)


def _crews(site: DrainContext, rehomed: Rehomed) -> Iterator[GangNodes]:
    """Each node that goes by itself, and those that go together."""
    for name in rehomed.together:
        crew = rehomed.crews.get(name) or GangNodes((site.by_name[name],), ())
        # One without a timer gets it first; and what another planner does to it is for this plan enough.
        if crew.nodes[0].name == name and all(_is_candidate(site, each) for each in crew.nodes):
            yield crew


def _is_candidate(site: DrainContext, seen: DrainNode) -> bool:
    return seen.candidate_since is not None and not site.is_taken(seen)
