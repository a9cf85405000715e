"""The timers of candidates: a soft taint goes onto a node that became one, and comes off one that is none any more.

What was not looked at keeps its taint: where there was no time for it, or where no candidates are looked for at all,
timers stand still. A soft taint keeps no pod away that has nowhere else to go.
"""

from collections.abc import Iterator, Mapping, Sequence

from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant
from reconciler.model.plan.action import Hold
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.reason import Facts, Reason
from reconciler.model.plan.refs import pod_ref
from reconciler.plan.drain import marks
from reconciler.plan.drain.candidates import completing
from reconciler.plan.drain.codes.candidacy import (
    CompletingDrainCandidate,
    DrainCandidate,
    DrainCandidateNext,
    EmptyDrainCandidate,
    NoLongerCandidate,
    UnreadyDrainCandidate,
    UnreadyEmptyDrainCandidate,
)
from reconciler.plan.drain.codes.eligibility import KEEPS_TIMER
from reconciler.plan.drain.codes.figures import destinations_of
from reconciler.plan.drain.context import DrainContext, DrainNode
from reconciler.plan.nodes.ownership import untouchable

MOST = 200  # taints that are put on in one plan: the others have their turn in the next


def since(context: DrainContext, drain_node: DrainNode) -> Instant:
    """Since when it has been a candidate; now where it has just become one. No time is ahead of now."""
    instant = drain_node.candidate_since
    return context.now if instant is None else min(instant, context.now)


def due_at(context: DrainContext, drain_node: DrainNode) -> Instant:
    """When it has been one for long enough."""
    return Instant(since(context, drain_node) + delay_ms(drain_node))


def is_due(context: DrainContext, drain_node: DrainNode) -> bool:
    """Whether its time has come."""
    return due_at(context, drain_node) <= context.now


def delay_ms(drain_node: DrainNode) -> int:
    """How long it must be one."""
    spec = drain_node.policy.spec
    wanted = spec.scale_down_unneeded_time if drain_node.is_ready else spec.scale_down_unready_time
    return wanted.milliseconds


def candidacy(context: DrainContext, drain_node: DrainNode, destinations: tuple[str, ...]) -> Reason:
    """Why it is one."""
    is_empty, pods = context.is_empty(drain_node), completing(context, drain_node.name)
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


def put_on(context: DrainContext, together: Mapping[str, tuple[str, ...]]) -> Iterator[Decision]:
    """For those that became candidates; those beyond the most that one plan taints are held until the next plan."""
    left = MOST
    for name, destinations in together.items():
        drain_node = context.by_name[name]
        if context.is_taken(drain_node) or drain_node.candidate_since is not None:
            continue
        if left:
            left -= 1
            yield context.act(drain_node, marks.soft(context.now), candidacy(context, drain_node, destinations))
        else:
            later = candidacy(context, drain_node, destinations)
            yield context.act(
                drain_node, Hold(), drain_node.reason(DrainCandidateNext(node=name, most=MOST, candidacy=later))
            )


def take_off(context: DrainContext, refused: Mapping[str, Reason]) -> Iterator[Decision]:
    """For those that are none any more; one that is drained keeps what it has until it is given back."""
    for drain_node in context.drain_nodes:
        mark, reason = drain_node.candidate, refused.get(drain_node.name)
        if mark is None or reason is None or drain_node.draining is not None or context.is_taken(drain_node):
            continue
        if untouchable(drain_node.node) is not None:
            continue
        if type(reason.facts) not in KEEPS_TIMER:
            yield context.act(
                drain_node, mark.off, drain_node.reason(NoLongerCandidate(node=drain_node.name, why=reason))
            )


def wait(context: DrainContext, drain_node: DrainNode, destinations: tuple[str, ...]) -> Decision:
    """One whose time has not come."""
    return context.act(drain_node, Hold(due_at(context, drain_node)), candidacy(context, drain_node, destinations))
