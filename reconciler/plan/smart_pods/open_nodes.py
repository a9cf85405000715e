"""The startup taint gpu.scheduling/arriving, which comes off each node of a pool once that can be used.

Karpenter writes all taints of a new node at once, and again while it has not seen yet that it did: the taint may come
back onto a node that was opened, and whose NodeClaim is Initialized by then. So it is the taint that is gone by.

A node is opened one plan after the smart pod is seen to be gone that waited for it. Karpenter counts no opened node for
a smart pod: one that still waited then would be bought a second machine.
"""

from collections.abc import Iterator

from reconciler.model import names
from reconciler.model.plan.action import Hold, Preconditions, Taint
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.reason import Reason
from reconciler.model.plan.refs import node_ref
from reconciler.plan.capacity.usable import is_opening
from reconciler.plan.smart_pods.context import SmartPodContext
from reconciler.plan.smart_pods.reasons import PLANNER, NodeUsable


def opened(context: SmartPodContext) -> Iterator[Decision]:
    """Whoever it was bought for: Karpenter buys with that taint for all."""
    awaited = _awaited(context)
    for facts in context.fleet.pool(context.pool.name).closed:
        node = facts.node
        taint = node.taint(names.ARRIVING)
        if taint is None or node.name in awaited or not is_opening(node, context.passing):
            continue
        subject = node_ref(node)
        why = Reason(NodeUsable(subject), context.pool.origin())
        presumes = Preconditions(resource_version=node.metadata.resource_version)
        labels = ((names.ARRIVED, "true"),)
        act = Taint(key=names.ARRIVING, value=None, effect=taint.effect, labels=labels, presumes=presumes)
        busy = context.draft.claimed_by(subject)
        yield Decision(PLANNER, subject, Hold() if busy else act, why, context.pool.name)


def _awaited(context: SmartPodContext) -> frozenset[str]:
    """Names of nodes that smart pods wait for which the scheduler has not bound: Karpenter may yet buy for these."""
    waiting = (each for each in context.requested if not each.pod.node and not each.pod.metadata.leaving)
    return frozenset(each.node.name for each in waiting if each.node is not None and not each.pod.is_finished)
