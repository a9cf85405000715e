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


def since(site: DrainContext, seen: DrainNode) -> Instant:
    """Since when it has been a candidate; now where it has just become one. No time is ahead of now."""
    found = seen.candidate_since
    return site.now if found is None else min(found, site.now)


def due_at(site: DrainContext, seen: DrainNode) -> Instant:
    """When it has been one for long enough."""
    return Instant(since(site, seen) + delay_ms(seen))


def is_due(site: DrainContext, seen: DrainNode) -> bool:
    """Whether its time has come."""
    return due_at(site, seen) <= site.now


def delay_ms(seen: DrainNode) -> int:
    """How long it must be one."""
    spec = seen.policy.spec
    wanted = spec.scale_down_unneeded_time if seen.is_ready else spec.scale_down_unready_time
    return wanted.milliseconds


def candidacy(site: DrainContext, seen: DrainNode, destinations: tuple[str, ...]) -> Reason:
    """Why it is one."""
    is_empty, pods = site.is_empty(seen), completing(site, seen.name)
    by = (seen.policy, seen.is_ready, is_empty, destinations, pods)
    return site.said.again(seen.name, "goes", by, lambda: _candidacy(seen, is_empty, destinations, pods))


def _candidacy(seen: DrainNode, is_empty: bool, destinations: tuple[str, ...], pods: Sequence[Pod]) -> Reason:
    field = "scaleDownUnneededTime" if seen.is_ready else "scaleDownUnreadyTime"
    return seen.reason(_candidate(seen, is_empty, destinations, pods), field)


def _candidate(seen: DrainNode, is_empty: bool, destinations: tuple[str, ...], pods: Sequence[Pod]) -> Facts:
    name, seconds = seen.name, delay_ms(seen) // 1_000
    if is_empty and seen.is_ready:
        return EmptyDrainCandidate(node=name, pool=seen.pool, delay_seconds=seconds)
    if is_empty:
        return UnreadyEmptyDrainCandidate(node=name, delay_seconds=seconds)
    if pods and seen.is_ready:
        first = pod_ref(pods[0])
        return CompletingDrainCandidate(node=name, pods=len(pods), pod=first, delay_seconds=seconds)
    code = DrainCandidate if seen.is_ready else UnreadyDrainCandidate
    return code(node=name, destinations=destinations_of(destinations), delay_seconds=seconds)


def put_on(site: DrainContext, together: Mapping[str, tuple[str, ...]]) -> Iterator[Decision]:
    """For those that became candidates; those beyond the most that one plan taints are held until the next plan."""
    left = MOST
    for name, destinations in together.items():
        seen = site.by_name[name]
        if site.is_taken(seen) or seen.candidate_since is not None:
            continue
        if left:
            left -= 1
            yield site.act(seen, marks.soft(site.now), candidacy(site, seen, destinations))
        else:
            later = candidacy(site, seen, destinations)
            yield site.act(seen, Hold(), seen.reason(DrainCandidateNext(node=name, most=MOST, candidacy=later)))


def take_off(site: DrainContext, refused: Mapping[str, Reason]) -> Iterator[Decision]:
    """For those that are none any more; one that is drained keeps what it has until it is given back."""
    for seen in site.seen:
        mark, reason = seen.candidate, refused.get(seen.name)
        if mark is None or reason is None or seen.draining is not None or site.is_taken(seen):
            continue
        if untouchable(seen.node) is not None:
            continue
        if type(reason.facts) not in KEEPS_TIMER:
            yield site.act(seen, mark.off, seen.reason(NoLongerCandidate(node=seen.name, why=reason)))


def wait(site: DrainContext, seen: DrainNode, destinations: tuple[str, ...]) -> Decision:
    """One whose time has not come."""
    return site.act(seen, Hold(due_at(site, seen)), candidacy(site, seen, destinations))
