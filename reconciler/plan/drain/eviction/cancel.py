"""Pods that were told to save their work, and stay: what they were told is taken back.

That is so once their node is not being emptied any more: it was given back, or its DrainPolicy is suspended or gone. As
it goes by what is seen on the node, it also comes of a drain that was broken off while nobody was there.
"""

from collections.abc import Iterator

from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.plan.action import Annotate
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.reason import Reason
from reconciler.model.plan.refs import pod_ref
from reconciler.plan.capacity.gangs import Gang
from reconciler.plan.drain.codes.emptying import EvictionCalledOff
from reconciler.plan.drain.context import DrainContext
from reconciler.plan.drain.eviction.checkpoints import notice_precondition
from reconciler.plan.drain.marks import draining_mark
from reconciler.plan.drain.reasons import PLANNER
from reconciler.plan.nodes.ownership import untouchable


def called_off(context: DrainContext, gangs: frozenset[Gang]) -> Iterator[Decision]:
    """What somebody else takes away is left to them. `gangs`: those that are on their way, wherever their pods run."""
    for pod in context.fleet.occupancy.notified_pods:
        node = context.fleet.node(pod.node)
        pool = context.pools.get(node.pool) if node is not None else None
        if node is None or pool is None or untouchable(node) is not None or _is_emptied(context, node):
            continue
        if context.draft.gangs.of(pod) in gangs:
            continue
        if not pod.metadata.leaving and not context.is_claimed(pod_ref(pod)):
            subject = pod_ref(pod)
            reason = Reason(EvictionCalledOff(pod=subject, node=node.name), pool.origin())
            act = Annotate(annotations=((names.EVICT_AT, None),), presumes=notice_precondition(pod))
            yield Decision(PLANNER, subject, act, reason, pool.name)


def _is_emptied(context: DrainContext, node: Node) -> bool:
    return node.pool in context.policy_of and draining_mark(node) is not None
