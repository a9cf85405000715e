"""What the taint gpu.scheduling/deletion-time says: when a node goes, and whether pods are kept away from it yet.

Theory of operation. A node that is to go bears the taint with its time, in unix seconds, softly at first: a pod that
needs the node still lands there, and then the taint comes off. 30 s before the time the same taint becomes hard, so
that whatever was on its way to the node has arrived by then. So the time of a hard taint means: pods have been kept
away since 30 s before it, or for longer. To keep that true, a taint that is made hard too late gets a later time: by
what it was late, where that is a few seconds; a minute from now, where nobody was there to do it.
One that is hard with a time long ago was put by hand, or by somebody who was away since: it is made hard anew.
"""

import msgspec

from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.instant import Instant, later, unix_seconds
from reconciler.model.policy.scaling import LEAST_DELAY_MS

KEY = names.DELETION_TIME
SOFT, HARD = "PreferNoSchedule", "NoSchedule"

LEAST_AHEAD_MS = LEAST_DELAY_MS  # whatever scaleDownDelay says
HARD_AHEAD_MS = 30_000
PROMPT_MS = 5_000  # lateness of somebody who was there all the time
AFTER_ABSENCE_MS = 60_000
TRUSTED_MS = 600_000  # a hard taint whose time is longer ago tells nothing of what is kept away now


class MarkTime(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """When a marked node goes."""

    written: str  # the value of the taint
    at: Instant | None = None  # None: that is no time


class DeletionTaint(msgspec.Struct, frozen=True, gc=False):
    """The taint as it stands on a node."""

    value: str
    effect: str

    @property
    def at(self) -> Instant | None:
        """When the node goes; None where that can't be read."""
        return unix_seconds(self.value)

    @property
    def time(self) -> MarkTime:
        return MarkTime(self.value, self.at)

    @property
    def is_hard(self) -> bool:
        return self.effect != SOFT


def mark_of(node: Node) -> DeletionTaint | None:
    """A hard one first, should a person have put both."""
    deletion_taint: DeletionTaint | None = None
    for taint in node.spec.taints:
        if taint.key == KEY and (deletion_taint is None or taint.effect != SOFT):
            deletion_taint = DeletionTaint(taint.value, taint.effect)
    return deletion_taint


def value_of(at: Instant) -> str:
    """As the taint has it."""
    return str(at // 1_000)


def time_of_new_mark(now: Instant, delay_ms: int) -> Instant:
    return _whole_second(now + max(delay_ms, LEAST_AHEAD_MS))


def hardens_at(at: Instant) -> Instant:
    """When a soft taint is to be made hard."""
    return later(at, -HARD_AHEAD_MS)


def time_of_hard_mark(at: Instant, now: Instant) -> Instant:
    """The time of a taint that is made hard now."""
    late_ms = now - hardens_at(at)
    if late_ms <= 0:
        return at
    return _whole_second(now + (HARD_AHEAD_MS if late_ms <= PROMPT_MS else AFTER_ABSENCE_MS))


def is_stale(mark: DeletionTaint, now: Instant) -> bool:
    """Whether it is hard, and its time so long ago that it is not taken for what was said then."""
    return mark.is_hard and mark.at is not None and now - mark.at > TRUSTED_MS


def _whole_second(moment_ms: int) -> Instant:
    return Instant(-(-moment_ms // 1_000) * 1_000)
