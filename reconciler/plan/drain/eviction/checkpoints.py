"""The time that a pod is given to save its work before it is evicted, where it asks for some.

Theory of operation. A pod with gpu.scheduling/checkpoint is told first when it will be evicted: gpu.scheduling/evict-at
on the pod itself is all that is remembered of it. It goes as soon as gpu.scheduling/checkpointed-at says that it saved
its work since it was told, or at that time, whichever is first. Seconds are compared: many can't write finer.

What it was told before its node began to be emptied, or further ahead than it may be, was said of something else: it is
told anew. A wish longer than maxGracefulTerminationSeconds is cut to that, and one that can't be read gets as much:
whoever wrote it meant some time. A pod that has not started has nothing to save.
"""

import msgspec

from reconciler.model import names
from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant, later, moment, timestamp, unix_seconds
from reconciler.model.plan.action import Annotate, Hold, Preconditions
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.reason import Reason
from reconciler.model.plan.refs import pod_ref
from reconciler.plan.drain.codes.emptying import (
    PodCheckpointUnreadable,
    PodEvicted,
    PodEvictedSaved,
    PodEvictedUnsaved,
    PodSavesItsWork,
    PodToldToSave,
    PodToldToSaveSooner,
)
from reconciler.plan.drain.context import DrainContext, DrainNode
from reconciler.plan.karpenter.durations import nanoseconds


class Wish(msgspec.Struct, frozen=True, gc=False):
    """How long a pod has to save its work, and whether that is as long as it asks for."""

    length_ms: int
    is_cut: bool = False  # to the most that its policy gives
    is_unreadable: bool = False


class Told(msgspec.Struct, frozen=True, gc=False):
    """What a pod knows."""

    asked_at: Instant
    evict_at: Instant


def saving(site: DrainContext, seen: DrainNode, pod: Pod) -> Decision | None:
    """It is told, or waited for; nothing where it may be evicted now."""
    wish = wish_of(seen, pod)
    if wish is None:
        return None
    told = _told(site, seen, pod, wish)
    if told is None:
        at = later(site.now, wish.length_ms)
        act = Annotate(annotations=((names.EVICT_AT, timestamp(at)),), presumes=as_told(pod))
        return site.act_on(pod, seen, act, _why_told(seen, pod, wish, at))
    if told.evict_at <= site.now or _has_saved(pod, told):
        return None
    facts = PodSavesItsWork(pod=pod_ref(pod), node=seen.name, time=told.evict_at)
    return site.act_on(pod, seen, Hold(told.evict_at), seen.reason(facts))


def _why_told(seen: DrainNode, pod: Pod, wish: Wish, at: Instant) -> Reason:
    subject, seconds = pod_ref(pod), wish.length_ms // 1_000
    if not (wish.is_cut or wish.is_unreadable):
        return seen.reason(PodToldToSave(pod=subject, node=seen.name, time=at, seconds=seconds))
    code = PodCheckpointUnreadable if wish.is_unreadable else PodToldToSaveSooner
    written = pod.metadata.annotations.checkpoint
    facts = code(pod=subject, node=seen.name, written=written, seconds=seconds, policy=seen.policy_ref, time=at)
    return seen.reason(facts, "maxGracefulTerminationSeconds")


def as_told(pod: Pod) -> Preconditions:
    """What it was told must stand as it was seen: on a view that is late it would be told again and again, and then
    evicted by a time that does not hold any more."""
    annotations = pod.metadata.annotations
    if not (annotations.checkpoint or annotations.evict_at):
        return Preconditions()
    has_not_begun = (("status.phase", "Pending"),) if pod.status.phase == "Pending" else ()
    return Preconditions(fields=((f"metadata.annotations[{names.EVICT_AT}]", annotations.evict_at), *has_not_begun))


def why_evicted(site: DrainContext, seen: DrainNode, pod: Pod, home: str) -> Reason:
    """Of one that may go: whether it saved its work, where it was to."""
    told, subject = told_of(site, seen, pod), pod_ref(pod)
    if told is None:
        return seen.reason(PodEvicted(pod=subject, node=seen.name, home=home))
    if _has_saved(pod, told):
        written = pod.metadata.annotations.checkpointed_at
        return seen.reason(PodEvictedSaved(pod=subject, written=written, node=seen.name, home=home))
    seconds = (told.evict_at - told.asked_at) // 1_000
    unsaved = PodEvictedUnsaved(pod=subject, seconds=seconds, node=seen.name, home=home)
    return seen.reason(unsaved, "maxGracefulTerminationSeconds")


def wish_of(seen: DrainNode, pod: Pod) -> Wish | None:
    """What it asks for, within bounds; nothing where it asks for none."""
    written = pod.metadata.annotations.checkpoint
    if not written or pod.status.phase == "Pending":
        return None
    most_ms = 1_000 * seen.policy.spec.max_graceful_termination_seconds
    try:
        length_ms = nanoseconds(written) // 1_000_000
    except ValueError:
        return Wish(most_ms, is_unreadable=True) if most_ms else None
    if length_ms > most_ms:
        return Wish(most_ms, is_cut=True) if most_ms else None
    return Wish(length_ms) if length_ms > 0 else None


def told_of(site: DrainContext, seen: DrainNode, pod: Pod) -> Told | None:
    """What it was told, if that is for this drain."""
    wish = wish_of(seen, pod)
    return _told(site, seen, pod, wish) if wish is not None else None


def _told(site: DrainContext, seen: DrainNode, pod: Pod, wish: Wish) -> Told | None:
    at = moment_of(pod.metadata.annotations.evict_at)
    since = seen.draining_since
    if at is None or since is None or at > site.now + wish.length_ms or at - wish.length_ms < since:
        return None
    return Told(later(at, -wish.length_ms), at)


def _has_saved(pod: Pod, told: Told) -> bool:
    at = moment_of(pod.metadata.annotations.checkpointed_at)
    return at is not None and at // 1_000 >= told.asked_at // 1_000


def moment_of(written: str) -> Instant | None:
    """Of RFC 3339 or of unix seconds; None where it can't be read."""
    seconds = unix_seconds(written)
    return moment(written) if seconds is None else seconds
