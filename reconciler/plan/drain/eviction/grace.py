"""How long a pod that is asked to leave may take: as long as it wishes, within what its policy allows."""

from collections.abc import Iterable

from reconciler.model.cluster.pod import Pod
from reconciler.plan.drain.context import DrainNode

_USUAL_SECONDS = 30


def grace_of(drain_node: DrainNode, pod: Pod) -> int:
    """Of one pod, in seconds."""
    return longest_grace(drain_node, [pod])


def longest_grace(drain_node: DrainNode, pods: Iterable[Pod]) -> int:
    """Of one among pods that leave together: as long as any of them wishes for."""
    wished = [pod.spec.termination_grace_period_seconds for pod in pods]
    longest = max((_USUAL_SECONDS if each is None else each for each in wished), default=_USUAL_SECONDS)
    return min(longest, drain_node.policy.spec.max_graceful_termination_seconds)
