"""Who needs a place since it was evicted lately: those whose successors are missing, and successors that wait."""

from reconciler.model.cluster.pod import Pod
from reconciler.plan.drain.context import DrainContext
from reconciler.plan.recent_evictions import owner_of, recent, unreplaced


def lacking(context: DrainContext) -> tuple[list[tuple[str, Pod]], list[Pod]]:
    """Pods that need a place since they were evicted, with the node they were on; and all others that wait."""
    waiting = context.fleet.snapshot.waiting
    lately = recent(context.inputs)
    if not lately:
        return [], waiting
    left = {each.owner: each.node for each in reversed(lately) if each.owner}
    found = [(each.node, pod) for each, pod in unreplaced(context.inputs)]
    coming = [pod for pod in waiting if owner_of(pod) in left and not pod.spec.scheduling_gates]
    found += [(left[owner_of(pod)], pod) for pod in coming]
    known = {pod.metadata.uid for pod in coming}
    return found, [pod for pod in waiting if pod.metadata.uid not in known]
