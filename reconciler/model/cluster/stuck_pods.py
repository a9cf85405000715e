"""How long a pod that was deleted is waited for, and pods that stay Terminating because nobody on their node can end
them: the kubelet is gone.

The owner of a pod chooses its grace period, which may be years. So a grace period is believed up to a longest one, as
Cluster Autoscaler does with --max-graceful-termination-sec: for a drained node that is maxGracefulTerminationSeconds of
its DrainPolicy, elsewhere the longest that a DrainPolicy can name. A longer one is cut.

A pod is stuck a minute after its grace period, counted from when it was to have ended, if its node has not been ready
for as long as the grace period and that minute. Karpenter waits for a stuck pod no longer either. A time that cannot be
read tells nothing: the pod counts as not stuck.
"""

from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant, later, moment

LONGEST_GRACE_SECONDS = 86_400  # that a DrainPolicy can name
_USUAL_GRACE_SECONDS = 30
_AFTER_GRACE_MS = 60_000


def leaves_by(pod: Pod, longest_grace_seconds: int) -> Instant | None:
    """When a pod that was deleted is to have ended, by the grace period that is believed; None for a pod that is not
    being deleted. The deletionTimestamp lies a whole grace period after the deletion."""
    ends = moment(pod.metadata.deletion_timestamp)
    if ends is None:
        return None
    given = pod.metadata.deletion_grace_period_seconds
    given_ms = 1_000 * max(0, _requested_seconds(pod) if given is None else given)
    # A pod is not deleted before it is made, whatever the two times say.
    deleted = max(ends - given_ms, moment(pod.metadata.creation_timestamp) or 0)
    return Instant(min(ends, deleted + min(given_ms, 1_000 * longest_grace_seconds)))


def stuck_at(pod: Pod, node: Node, longest_grace_seconds: int) -> Instant | None:
    """From when on the pod is stuck if nothing changes; None for a pod that is not being deleted or whose node is
    ready."""
    ends = leaves_by(pod, longest_grace_seconds)
    unready = unready_since(node)
    if ends is None or unready is None:
        return None
    waits_ms = 1_000 * max(0, min(_requested_seconds(pod), longest_grace_seconds)) + _AFTER_GRACE_MS
    return later(max(ends, unready), waits_ms)


def is_stuck(pod: Pod, node: Node, now: Instant, longest_grace_seconds: int) -> bool:
    """Whether nobody will end the pod."""
    at = stuck_at(pod, node, longest_grace_seconds)
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


def _requested_seconds(pod: Pod) -> int:
    requested = pod.spec.termination_grace_period_seconds
    return _USUAL_GRACE_SECONDS if requested is None else requested
