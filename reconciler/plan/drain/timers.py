"""The timers of candidates: a soft taint goes onto a node that became one, and comes off one that is none any more.

What was not looked at keeps its taint: where there was no time for it, or where no candidates are looked for at all,
timers stand still. A soft taint keeps no pod away that has nowhere else to go.
"""

from collections.abc import Iterator, Mapping, Sequence

from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant
from reconciler.model.planned.action import Hold
from reconciler.model.planned.decision import Decision
from reconciler.model.planned.reason import Reason
from reconciler.plan.drain import marks, reasons
from reconciler.plan.drain.candidates import completing
from reconciler.plan.drain.site import Seen, Site, why
from reconciler.plan.explain import sentence
from reconciler.plan.reasons import counted
from reconciler.plan.removal import untouchable

MOST = 200  # taints that are put on in one plan: the others have their turn in the next


def since(site: Site, seen: Seen) -> Instant:
    """Since when it has been a candidate; now where it has just become one. No time is ahead of now."""
    found = seen.candidate_since
    return site.now if found is None else min(found, site.now)


def due_at(site: Site, seen: Seen) -> Instant:
    """When it has been one for long enough."""
    return Instant(since(site, seen) + delay_ms(seen))


def is_due(site: Site, seen: Seen) -> bool:
    """Whether its time has come."""
    return due_at(site, seen) <= site.now


def delay_ms(seen: Seen) -> int:
    """How long it must be one."""
    spec = seen.policy.spec
    wanted = spec.scale_down_unneeded_time if seen.is_ready else spec.scale_down_unready_time
    return wanted.milliseconds


def candidacy(site: Site, seen: Seen, destinations: tuple[str, ...]) -> Reason:
    """Why it is one."""
    is_empty, pods = site.is_empty(seen), completing(site, seen.name)
    by = (seen.policy, seen.is_ready, is_empty, destinations, pods)
    return site.said.again(seen.name, "goes", by, lambda: _candidacy(seen, is_empty, destinations, pods))


def _candidacy(seen: Seen, is_empty: bool, destinations: tuple[str, ...], pods: Sequence[Pod]) -> Reason:
    field = "scaleDownUnneededTime" if seen.is_ready else "scaleDownUnreadyTime"
    if is_empty:
        because = reasons.EMPTY_CANDIDATE if seen.is_ready else reasons.UNREADY_EMPTY_CANDIDATE
        return why(seen, because, field, minutes=_minutes(delay_ms(seen)))
    if pods and seen.is_ready:
        facts = {"pods": counted(len(pods), "pod"), "pod": f"Pod/{pods[0].title}"}
        return why(seen, reasons.COMPLETING_CANDIDATE, field, minutes=_minutes(delay_ms(seen)), **facts)
    because = reasons.CANDIDATE if seen.is_ready else reasons.UNREADY_CANDIDATE
    first = ", ".join(destinations[:3]) + (f" and {len(destinations) - 3} more" if len(destinations) > 3 else "")
    return why(seen, because, field, destinations=first or "other nodes", minutes=_minutes(delay_ms(seen)))


def put_on(site: Site, together: Mapping[str, tuple[str, ...]]) -> Iterator[Decision]:
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
            yield site.act(
                seen,
                Hold(),
                why(seen, reasons.NEXT_CANDIDATE, most=MOST, code=candidacy(site, seen, destinations).code),
            )


def take_off(site: Site, refused: Mapping[str, Reason]) -> Iterator[Decision]:
    """For those that are none any more; one that is drained keeps what it has until it is given back."""
    for seen in site.seen:
        mark, reason = seen.candidate, refused.get(seen.name)
        if mark is None or reason is None or seen.draining is not None or site.is_taken(seen):
            continue
        if untouchable(seen.node) is not None:
            continue
        if reason.code not in reasons.KEEPS_TIMER:
            yield site.act(seen, mark.off, why(seen, reasons.NO_CANDIDATE, why=sentence(reason)))


def wait(site: Site, seen: Seen, destinations: tuple[str, ...]) -> Decision:
    """One whose time has not come."""
    return site.act(seen, Hold(due_at(site, seen)), candidacy(site, seen, destinations))


def _minutes(length_ms: int) -> str:
    """Whole ones, or with a tenth."""
    tenths = length_ms // 6_000
    return f"{tenths // 10}.{tenths % 10}" if tenths % 10 else str(tenths // 10)
