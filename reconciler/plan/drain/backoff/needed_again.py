"""Owner of which nodes that were emptied are needed after all: as many as their pool, or the cluster, lacks by now.

Demand may come, or other nodes may go, while a node is being emptied. To delete it then, and to have another bought,
would cost the time of a machine and its price. So it stays, if it is ready: as an empty node it is scaling's again.
It also stays for a pod that was evicted from the pool lately and not made anew, and that has no other place.
"""

from reconciler.model.plan.reason import Facts, Reason
from reconciler.plan.drain.codes.emptying import (
    BelowClusterMin,
    BelowMinSize,
    DrainedNodeNeeded,
    EvictedPodWithoutPlace,
    PodsWaitForCapacity,
    WarmNodesLacking,
)
from reconciler.plan.drain.context import DrainContext, DrainNode, ref_of_evicted
from reconciler.plan.drain.placement import Rehomed
from reconciler.plan.guards.cluster_min import ClusterMin
from reconciler.plan.recent_evictions import unreplaced
from reconciler.plan.sizes_by_time import provisioners_now


class NeededAgain:
    """For one plan."""

    def __init__(self, context: DrainContext, rehomed: Rehomed) -> None:
        self._cluster_min = ClusterMin(context.inputs, context.draft)
        self._lacks: dict[str, tuple[int, Facts]] = {}  # by pool: how many nodes, and why
        for wish in provisioners_now(context.inputs):
            if not wish.spec.suspend:
                staying = sum(context.fleet.pool(wish.spec.pool_name).staying.values())
                least = wish.spec.min_size
                self._lack(wish.spec.pool_name, least - staying, BelowMinSize(min_size=least, staying=staying))
        for each in context.draft.missing:
            if each.why == "demand":
                self._lack(each.pool, each.nodes, PodsWaitForCapacity())
            if each.why == "warmNodes":
                self._lack(each.pool, each.nodes, WarmNodesLacking())
        for evicted, _ in unreplaced(context.inputs) if rehomed.evicted_without_place else ():
            if evicted.uid in rehomed.evicted_without_place:
                self._lack(evicted.pool, 1, EvictedPodWithoutPlace(pod=ref_of_evicted(evicted)))

    def _lack(self, pool: str, nodes: int, why: Facts) -> None:
        if nodes > (self._lacks[pool][0] if pool in self._lacks else 0):
            self._lacks[pool] = nodes, why

    def why_kept(self, drain_node: DrainNode) -> Reason | None:
        """Each node makes up for one that is lacking."""
        if not drain_node.is_ready:
            return None
        if lack := self._cluster_min.why_kept(drain_node.node):
            self._cluster_min.give(drain_node.node)
            return _needed(drain_node, None, BelowClusterMin(left=lack.left, resource=lack.resource, least=lack.least))
        if drain_node.pool not in self._lacks:
            return None
        nodes, why = self._lacks[drain_node.pool]
        if not nodes:
            return None
        self._lacks[drain_node.pool] = nodes - 1, why
        return _needed(drain_node, nodes, why)


def _needed(drain_node: DrainNode, nodes: int | None, why: Facts) -> Reason:
    return drain_node.reason(
        DrainedNodeNeeded(node=drain_node.name, pool=drain_node.pool, lacks=nodes, why=Reason(why))
    )
