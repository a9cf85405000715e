"""What the taints of a drain say: since when a node is not needed (soft), and since when it is emptied (hard).

Both times are unix seconds. The soft one is the timer of a candidate: it is put on when the node becomes one, taken off
when it is none any more, and never written again in between. So a timer outlives a restart, and is seen by people.
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
_LATE_AFTER_MS = 60_000  # clocks differ, and a scheduler may not have seen the taint yet


class DrainTaint(msgspec.Struct, frozen=True, gc=False):
    """One of the two as it stands on a node."""

    key: str
    value: str
    effect: str
    since: Instant | None  # None where that can't be read

    @property
    def off(self) -> Taint:
        return Taint(key=self.key, value=None, effect=self.effect)


def candidate_mark(node: Node) -> DrainTaint | None:
    return _mark(node, names.DRAIN_CANDIDATE)


def draining_mark(node: Node) -> DrainTaint | None:
    """A soft one was not put on by a drain and keeps no pod away: its time counts as unreadable, and it comes off."""
    mark = _mark(node, names.DRAINING)
    return replace(mark, since=None) if mark is not None and mark.effect == SOFT else mark


def came_late(pod: Pod, mark: DrainTaint | None) -> bool:
    """Whether the pod was made well after its node began to be emptied: it bears the taint, or asked no scheduler."""
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
