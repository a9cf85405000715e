"""Whether a node is as empty as a decision presumes, by the pods that are bound to it now."""

from collections.abc import Iterable

from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.stuck_pods import is_stuck
from reconciler.model.instant import Instant
from reconciler.model.plan.action import Preconditions
from reconciler.protocol.preconditions import WriteResult


def occupied(node: Node, pods: Iterable[Pod], presumes: Preconditions, now: Instant) -> WriteResult | None:
    """How it ends where some pod counts; None where none does. Pods that nobody will end do not count."""
    longest = presumes.longest_grace_seconds
    counting = sorted(pod.title for pod in pods if pod.counts and not is_stuck(pod, node, now, longest))
    if not counting:
        return None
    others = f" and {len(counting) - 1} more" if len(counting) > 1 else ""
    return WriteResult("stale", f"Node/{node.name} was to be empty, and Pod/{counting[0]}{others} came to it")
