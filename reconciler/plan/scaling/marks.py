"""Marks: the taint gpu.scheduling/deletion-time, with the deletion time of a node, and whether pods are kept away yet.

Theory of operation. A node that will be deleted gets the taint with the time in unix seconds, soft at first: a pod
that needs the node is still scheduled there, and then the taint is removed. 30 s before the time the taint becomes
hard, so that pods on their way to the node have arrived by the deletion time. So the time of a hard taint means that
pods have been kept away for at least 30 s before that time. To keep this guarantee, a taint that becomes hard too
late gets a later time: by the delay if that is a few seconds; a minute from now if no controller was running. A hard
taint with a time long ago was added by hand, or before a long absence of the controller, and is made hard again with
a new time.
"""

import msgspec

from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.instant import Instant, later, unix_seconds
from reconciler.model.policy.scaling import LEAST_DELAY_MS

KEY = names.DELETION_TIME
SOFT, HARD = "PreferNoSchedule", "NoSchedule"

LEAST_AHEAD_MS = LEAST_DELAY_MS  # minimum, whatever scaleDownDelay is
HARD_AHEAD_MS = 30_000
PROMPT_MS = 5_000  # delay of a controller that was running all the time
AFTER_ABSENCE_MS = 60_000
TRUSTED_MS = 600_000  # a hard taint with an older time does not prove that pods are kept away now


class MarkTime(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Deletion time of a marked node."""

    written: str  # the value of the taint
    at: Instant | None = None  # None: unreadable


class DeletionTaint(msgspec.Struct, frozen=True, gc=False):
    """The taint on a node."""

    value: str
    effect: str

    @property
    def at(self) -> Instant | None:
        """Deletion time of the node; None if unreadable."""
        return unix_seconds(self.value)

    @property
    def time(self) -> MarkTime:
        return MarkTime(self.value, self.at)

    @property
    def is_hard(self) -> bool:
        return self.effect != SOFT


def mark_of(node: Node) -> DeletionTaint | None:
    """Mark of the node. If a person added two, the hard one."""
    deletion_taint: DeletionTaint | None = None
    for taint in node.spec.taints:
        if taint.key == KEY and (deletion_taint is None or taint.effect != SOFT):
            deletion_taint = DeletionTaint(taint.value, taint.effect)
    return deletion_taint


def value_of(at: Instant) -> str:
    """Value of the taint."""
    return str(at // 1_000)


def time_of_new_mark(now: Instant, delay_ms: int) -> Instant:
    return _whole_second(now + max(delay_ms, LEAST_AHEAD_MS))


def hardens_at(at: Instant) -> Instant:
    """Time when a soft taint becomes hard."""
    return later(at, -HARD_AHEAD_MS)


def time_of_hard_mark(at: Instant, now: Instant) -> Instant:
    """Time in a taint that becomes hard now."""
    late_ms = now - hardens_at(at)
    if late_ms <= 0:
        return at
    return _whole_second(now + (HARD_AHEAD_MS if late_ms <= PROMPT_MS else AFTER_ABSENCE_MS))


def is_stale(mark: DeletionTaint, now: Instant) -> bool:
    """Whether the taint is hard and its time is so long ago that the taint proves nothing."""
    return mark.is_hard and mark.at is not None and now - mark.at > TRUSTED_MS


def _whole_second(moment_ms: int) -> Instant:
    return Instant(-(-moment_ms // 1_000) * 1_000)
