"""Candidate timers, the order in which candidates drain, and removal of orphaned taints."""

from collections.abc import Hashable, Iterator, Mapping, Sequence, Set
from fractions import Fraction
from heapq import heapify, heappop, heappush

import msgspec

from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Decision, Facts, Hold, Reason, node_ref, pod_ref
from reconciler.plan.drain import marks
from reconciler.plan.drain.candidates import EligibilityContext
from reconciler.plan.drain.codes.blockers import KEEPS_TIMER
from reconciler.plan.drain.codes.candidacy import (
    CompletingDrainCandidate,
    DrainCandidate,
    DrainCandidateNext,
    EmptyDrainCandidate,
    NoDrainPolicy,
    NoLongerCandidate,
    UnreadyDrainCandidate,
    UnreadyEmptyDrainCandidate,
)
from reconciler.plan.drain.codes.words import destinations_of
from reconciler.plan.drain.context import DrainContext, DrainNode
from reconciler.plan.drain.gang_placement import GangNodes, Members
from reconciler.plan.drain.marks import candidate_mark, draining_mark
from reconciler.plan.drain.reasons import PLANNER
from reconciler.plan.nodes.ownership import untouchable

# --- Timers: a soft taint is added to a new candidate, and removed from a node that is no longer a candidate.
#
# A node that was not evaluated keeps its taint: if there was no time, or if no candidates are evaluated, timers keep
# running. A soft taint does not keep a pod away that fits on no other node.

MOST = 200  # taints added in one plan; further nodes get theirs in the next plan


def since(context: DrainContext, drain_node: DrainNode) -> Instant:
    """Start of the timer; now for a new candidate. Never in the future."""
    instant = drain_node.candidate_since
    return context.now if instant is None or instant > context.now else instant


def due_at(context: DrainContext, drain_node: DrainNode) -> Instant:
    """When the timer expires."""
    return Instant(since(context, drain_node) + delay_ms(drain_node))


def is_due(context: DrainContext, drain_node: DrainNode) -> bool:
    """Whether the timer has expired."""
    return due_at(context, drain_node) <= context.now


def delay_ms(drain_node: DrainNode) -> int:
    """Duration of the timer."""
    spec = drain_node.policy.spec
    wanted = spec.scale_down_unneeded_time if drain_node.is_ready else spec.scale_down_unready_time
    return wanted.milliseconds


def candidacy(context: DrainContext, drain_node: DrainNode, destinations: tuple[str, ...]) -> Reason:
    """Reason why the node is a candidate."""
    is_empty, pods = context.is_empty(drain_node), context.completing.get(drain_node.name, ())
    by = (drain_node.policy, drain_node.is_ready, is_empty, destinations, pods)
    return context.said.again(drain_node.name, "goes", by, lambda: _candidacy(drain_node, is_empty, destinations, pods))


def _candidacy(drain_node: DrainNode, is_empty: bool, destinations: tuple[str, ...], pods: Sequence[Pod]) -> Reason:
    field = "scaleDownUnneededTime" if drain_node.is_ready else "scaleDownUnreadyTime"
    return drain_node.reason(_candidate(drain_node, is_empty, destinations, pods), field)


def _candidate(drain_node: DrainNode, is_empty: bool, destinations: tuple[str, ...], pods: Sequence[Pod]) -> Facts:
    name, seconds = drain_node.name, delay_ms(drain_node) // 1_000
    if is_empty and drain_node.is_ready:
        return EmptyDrainCandidate(node=name, pool=drain_node.pool, delay_seconds=seconds)
    if is_empty:
        return UnreadyEmptyDrainCandidate(node=name, delay_seconds=seconds)
    if pods and drain_node.is_ready:
        first = pod_ref(pods[0])
        return CompletingDrainCandidate(node=name, pods=len(pods), pod=first, delay_seconds=seconds)
    code = DrainCandidate if drain_node.is_ready else UnreadyDrainCandidate
    return code(node=name, destinations=destinations_of(destinations), delay_seconds=seconds)


def put_on(context: DrainContext, together: Mapping[str, tuple[str, ...]], settling: Set[str]) -> Iterator[Decision]:
    """Start timers of new candidates. Candidates beyond the limit of one plan are held until the next plan. `settling`:
    nodes of the last batch, whose timers stay as they are.
    """
    left = MOST
    for name, destinations in together.items():
        drain_node = context.by_name[name]
        if drain_node.candidate_since is not None or name in settling or context.is_taken(drain_node):
            continue
        if left:
            left -= 1
            yield context.act(drain_node, marks.soft(context.now), candidacy(context, drain_node, destinations))
        else:
            later = candidacy(context, drain_node, destinations)
            yield context.act(
                drain_node, Hold(), drain_node.reason(DrainCandidateNext(node=name, most=MOST, candidacy=later))
            )


def take_off(context: DrainContext, refused: Mapping[str, Reason], settling: Set[str]) -> Iterator[Decision]:
    """Stop timers of nodes that are no longer candidates. A draining node keeps its taint until the drain is
    cancelled.
    """
    for drain_node in context.drain_nodes:
        mark, reason = drain_node.candidate, refused.get(drain_node.name)
        if mark is None or reason is None or drain_node.name in settling:
            continue
        if drain_node.draining is not None or context.is_taken(drain_node):
            continue
        if untouchable(drain_node.node) is not None:
            continue
        if type(reason.facts) not in KEEPS_TIMER:
            yield context.act(
                drain_node, mark.off, drain_node.reason(NoLongerCandidate(node=drain_node.name, why=reason))
            )


def wait(context: DrainContext, drain_node: DrainNode, destinations: tuple[str, ...]) -> Decision:
    """Hold on a candidate whose timer has not expired."""
    return context.act(drain_node, Hold(due_at(context, drain_node)), candidacy(context, drain_node, destinations))


# --- Order in which candidates drain after their timers: most valuable first, beside the nodes that drain already.
#
# Nodes of one pool and one machine type save the same, whatever drains beside them. So they form one line, ordered by
# lost work, and only the first node of each line is evaluated, and evaluated again when another node was taken.

Place = tuple[Fraction | int, Instant, int]  # lost work, start of the timer, and index of the group
Key = tuple[Fraction | int, Fraction | int, Instant, int]


class EqualSavings(msgspec.Struct):
    """Groups with equal savings."""

    saves: GangNodes  # any of the groups
    places: list[Place] = []  # in reverse: the last place is next

    def key(self, eligibility: EligibilityContext) -> Key:
        """Sort key of the next group; the lowest is best."""
        return (-eligibility.worth.saved(self.saves.nodes), *self.places[-1])


def in_drain_order(
    eligibility: EligibilityContext, members: Members, crews: Sequence[GangNodes]
) -> Iterator[GangNodes]:
    """The caller must call `eligibility.worth.take` for each group that drains, before it takes the next group."""
    worth = eligibility.worth
    waiting = [(line.key(eligibility), worth.taken, line) for line in _lines(eligibility, members, crews)]
    heapify(waiting)
    while waiting:
        key, known, line = heappop(waiting)
        if known != worth.taken and (now := line.key(eligibility)) > key:  # nodes taken since leave less to save
            heappush(waiting, (now, worth.taken, line))
            continue
        *_, at = line.places.pop()
        yield crews[at]
        if line.places:
            saves = key[0] if known == worth.taken else line.key(eligibility)[0]
            heappush(waiting, ((saves, *line.places[-1]), worth.taken, line))


def _lines(eligibility: EligibilityContext, members: Members, crews: Sequence[GangNodes]) -> Iterator[EqualSavings]:
    savings: dict[Hashable, EqualSavings] = {}
    for at, crew in enumerate(crews):
        is_one = len(crew.nodes) == 1 and not crew.gangs
        sort: Hashable = eligibility.worth.sort(crew.nodes[0]) if is_one else at
        line = savings.get(sort)
        if line is None:
            line = savings[sort] = EqualSavings(crew)
        oldest = min([since(eligibility.context, each) for each in crew.nodes])
        line.places.append((eligibility.worth.lost(crew.nodes, _elsewhere(members, crew)), oldest, at))
    for line in savings.values():
        line.places.sort(reverse=True)
        yield line


def _elsewhere(members: Members, crew: GangNodes) -> tuple[Pod, ...]:
    """Gang pods on nodes that stay."""
    if not crew.gangs:
        return ()
    nodes = {each.name for each in crew.nodes}
    return tuple([pod for gang in crew.gangs for pod in members.of[gang] if pod.node not in nodes])


# --- Orphaned taints: their DrainPolicy is suspended or deleted, so the taints are removed.
#
# Otherwise the taints would keep pods away for ever. In an observed pool the removal is reported only, and the taints
# stay (plan/holds/standstill.py). Nodes that others remove are skipped.


def left_behind(context: DrainContext) -> Iterator[Decision]:
    """Removal of orphaned taints. The hard taint comes first if a node has both, because a subject has one action."""
    for facts in context.fleet.nodes_drained:
        if facts.pool in context.policy_of or facts.pool not in context.pools:
            continue
        node, pool = facts.node, context.pools[facts.pool]
        mark = draining_mark(node) or candidate_mark(node)
        if mark is not None and untouchable(node) is None and not context.is_claimed(node_ref(node)):
            reason = Reason(NoDrainPolicy(pool=pool.name, node=node.name, key=mark.key), pool.origin())
            yield Decision(PLANNER, node_ref(node), mark.off, reason, pool.name)
