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


class CheckpointTime(msgspec.Struct, frozen=True, gc=False):
    """How long a pod has to save its work, and whether that is as long as it asks for."""

    length_ms: int
    is_cut: bool = False  # to the most that its policy gives
    is_unreadable: bool = False


class CheckpointNotice(msgspec.Struct, frozen=True, gc=False):
    """What a pod knows."""

    notified_at: Instant
    evict_at: Instant


def saving(context: DrainContext, drain_node: DrainNode, pod: Pod) -> Decision | None:
    """It is told, or waited for; nothing where it may be evicted now."""
    wish = wish_of(drain_node, pod)
    if wish is None:
        return None
    notice = _read_notice(context, drain_node, pod, wish)
    if notice is None:
        at = later(context.now, wish.length_ms)
        act = Annotate(annotations=((names.EVICT_AT, timestamp(at)),), presumes=notice_precondition(pod))
        return context.act_on(pod, drain_node, act, _checkpoint_reason(drain_node, pod, wish, at))
    if notice.evict_at <= context.now or _has_saved(pod, notice):
        return None
    facts = PodSavesItsWork(pod=pod_ref(pod), node=drain_node.name, time=notice.evict_at)
    return context.act_on(pod, drain_node, Hold(notice.evict_at), drain_node.reason(facts))


def _checkpoint_reason(drain_node: DrainNode, pod: Pod, wish: CheckpointTime, at: Instant) -> Reason:
    subject, seconds = pod_ref(pod), wish.length_ms // 1_000
    if not (wish.is_cut or wish.is_unreadable):
        return drain_node.reason(PodToldToSave(pod=subject, node=drain_node.name, time=at, seconds=seconds))
    code = PodCheckpointUnreadable if wish.is_unreadable else PodToldToSaveSooner
    written = pod.metadata.annotations.checkpoint
    facts = code(
        pod=subject, node=drain_node.name, written=written, seconds=seconds, policy=drain_node.policy_ref, time=at
    )
    return drain_node.reason(facts, "maxGracefulTerminationSeconds")


def notice_precondition(pod: Pod) -> Preconditions:
    """What it was told must stand as it was seen: on a view that is late it would be told again and again, and then
    evicted by a time that does not hold any more."""
    annotations = pod.metadata.annotations
    if not (annotations.checkpoint or annotations.evict_at):
        return Preconditions()
    has_not_begun = (("status.phase", "Pending"),) if pod.status.phase == "Pending" else ()
    return Preconditions(fields=((f"metadata.annotations[{names.EVICT_AT}]", annotations.evict_at), *has_not_begun))


def why_evicted(context: DrainContext, drain_node: DrainNode, pod: Pod, home: str) -> Reason:
    """Of one that may go: whether it saved its work, where it was to."""
    notice, subject = notice_of(context, drain_node, pod), pod_ref(pod)
    if notice is None:
        return drain_node.reason(PodEvicted(pod=subject, node=drain_node.name, home=home))
    if _has_saved(pod, notice):
        written = pod.metadata.annotations.checkpointed_at
        return drain_node.reason(PodEvictedSaved(pod=subject, written=written, node=drain_node.name, home=home))
    seconds = (notice.evict_at - notice.notified_at) // 1_000
    unsaved = PodEvictedUnsaved(pod=subject, seconds=seconds, node=drain_node.name, home=home)
    return drain_node.reason(unsaved, "maxGracefulTerminationSeconds")


def wish_of(drain_node: DrainNode, pod: Pod) -> CheckpointTime | None:
    """What it asks for, within bounds; nothing where it asks for none."""
    written = pod.metadata.annotations.checkpoint
    if not written or pod.status.phase == "Pending":
        return None
    most_ms = 1_000 * drain_node.policy.spec.max_graceful_termination_seconds
    try:
        length_ms = nanoseconds(written) // 1_000_000
    except ValueError:
        return CheckpointTime(most_ms, is_unreadable=True) if most_ms else None
    if length_ms > most_ms:
        return CheckpointTime(most_ms, is_cut=True) if most_ms else None
    return CheckpointTime(length_ms) if length_ms > 0 else None


def notice_of(context: DrainContext, drain_node: DrainNode, pod: Pod) -> CheckpointNotice | None:
    """What it was told, if that is for this drain."""
    wish = wish_of(drain_node, pod)
    return _read_notice(context, drain_node, pod, wish) if wish is not None else None


def _read_notice(
    context: DrainContext, drain_node: DrainNode, pod: Pod, wish: CheckpointTime
) -> CheckpointNotice | None:
    at = moment_of(pod.metadata.annotations.evict_at)
    since = drain_node.draining_since
    if at is None or since is None or at > context.now + wish.length_ms or at - wish.length_ms < since:
        return None
    return CheckpointNotice(later(at, -wish.length_ms), at)


def _has_saved(pod: Pod, notice: CheckpointNotice) -> bool:
    at = moment_of(pod.metadata.annotations.checkpointed_at)
    return at is not None and at // 1_000 >= notice.notified_at // 1_000


def moment_of(written: str) -> Instant | None:
    """Of RFC 3339 or of unix seconds; None where it can't be read."""
    seconds = unix_seconds(written)
    return moment(written) if seconds is None else seconds
