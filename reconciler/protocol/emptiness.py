"""Whether a node is as empty as a decision presumes, by the pods that are bound to it now."""

from collections.abc import Iterable

from reconciler.model.cluster.pod import Pod
from reconciler.protocol.presumed import Settled


def occupied(title: str, pods: Iterable[Pod]) -> Settled | None:
    """How it ends where some pod counts; None where none does."""
    counting = sorted(pod.title for pod in pods if pod.counts)
    if not counting:
        return None
    others = f" and {len(counting) - 1} more" if len(counting) > 1 else ""
    return Settled("stale", f"{title} was to be empty, and Pod/{counting[0]}{others} came to it")
