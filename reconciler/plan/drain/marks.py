"""Taints of drains: since when a node is unneeded (soft), and since when a node is draining (hard).

Both times are unix seconds. The soft taint is the timer of a candidate: it is added when the node becomes a
candidate, removed when the node no longer is one, and never rewritten in between. So a timer survives restarts, and
people can see the timer.
"""

import msgspec
from msgspec.structs import replace

from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant, moment, unix_seconds
from reconciler.model.plan.decision import Taint
from reconciler.plan.nodes.ownership import nobody_elses

SOFT, HARD = "PreferNoSchedule", "NoSchedule"
_LATE_AFTER_MS = 60_000  # clocks differ, and the scheduler may not have observed the taint yet


class DrainTaint(msgspec.Struct, frozen=True, gc=False):
    """One of the two taints on a node."""

    key: str
    value: str
    effect: str
    since: Instant | None  # None if unreadable

    @property
    def off(self) -> Taint:
        return Taint(key=self.key, value=None, effect=self.effect)


def candidate_mark(node: Node) -> DrainTaint | None:
    return _mark(node, names.DRAIN_CANDIDATE)


def draining_mark(node: Node) -> DrainTaint | None:
    """Hard taint of a drain. A soft taint with this key is not from a drain and keeps no pods away: its time counts as
    unreadable, so the taint is removed.
    """
    mark = _mark(node, names.DRAINING)
    return replace(mark, since=None) if mark is not None and mark.effect == SOFT else mark


def came_late(pod: Pod, mark: DrainTaint | None) -> bool:
    """Whether the pod was created well after the drain of its node began: the pod tolerates the taint, or bypassed the
    scheduler.
    """
    made = moment(pod.metadata.creation_timestamp)
    return mark is not None and mark.since is not None and made is not None and made > mark.since + _LATE_AFTER_MS


def soft(since: Instant) -> Taint:
    return Taint(key=names.DRAIN_CANDIDATE, value=str(since // 1_000), effect=SOFT)


def hard(since: Instant, node: Node) -> Taint:
    presumes = nobody_elses(names.DRAINING, node)
    return Taint(key=names.DRAINING, value=str(since // 1_000), effect=HARD, presumes=presumes)


def _mark(node: Node, key: str) -> DrainTaint | None:
    node_taint = node.taint(key)
    return (
        None
        if node_taint is None
        else DrainTaint(key, node_taint.value, node_taint.effect, unix_seconds(node_taint.value))
    )
