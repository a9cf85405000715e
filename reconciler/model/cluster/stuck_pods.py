"""Pods that stay Terminating, because nobody on their node can end them: the kubelet is gone.

A pod is stuck a minute after its grace period, counted from its deletionTimestamp, if its node has not been ready for
as long as the grace period and that minute. Karpenter waits for a stuck pod no longer either. A time that cannot be
read tells nothing: the pod counts as not stuck.
"""

from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant, later, moment

_USUAL_GRACE_SECONDS = 30
_AFTER_GRACE_MS = 60_000


def stuck_at(pod: Pod, node: Node) -> Instant | None:
    """From when on the pod is stuck if nothing changes; None for a pod that is not being deleted or whose node is
    ready."""
    deleted = moment(pod.metadata.deletion_timestamp)
    unready = unready_since(node)
    if deleted is None or unready is None:
        return None
    asked = pod.spec.termination_grace_period_seconds
    waits_ms = 1_000 * max(0, _USUAL_GRACE_SECONDS if asked is None else asked) + _AFTER_GRACE_MS
    return later(max(deleted, unready), waits_ms)


def is_stuck(pod: Pod, node: Node, now: Instant) -> bool:
    """Whether nobody will end the pod."""
    at = stuck_at(pod, node)
    return at is not None and at <= now


def unready_since(node: Node) -> Instant | None:
    """None for a node that is ready, or that does not say since when it is not."""
    for each in node.status.conditions:
        if each.type == "Ready":
            return None if each.status == "True" else moment(each.last_transition_time)
    return None


def is_silent(node: Node) -> bool:
    """Whether its kubelet has stopped to report, which the node controller notes as Unknown."""
    return any(each.type == "Ready" and each.status == "Unknown" for each in node.status.conditions)
