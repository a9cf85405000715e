"""Owner of which nodes that were emptied are needed after all: as many as their pool, or the cluster, lacks by now.

Demand may come, or other nodes may go, while a node is being emptied. To delete it then, and to have another bought,
would cost the time of a machine and its price. So it stays, if it is ready: as an empty node it is scaling's again.
It also stays for a pod that was evicted from the pool lately and not made anew, and that has no other place.
"""

from reconciler.model.planned.reason import Reason
from reconciler.plan.drain import reasons
from reconciler.plan.drain.rehome import Rehomed
from reconciler.plan.drain.site import Seen, Site, why
from reconciler.plan.guards.cluster_min import ClusterMin
from reconciler.plan.reasons import counted
from reconciler.plan.recent_evictions import unreplaced
from reconciler.plan.sizes_by_time import provisioners_now


class NeededAgain:
    """For one plan."""

    def __init__(self, site: Site, rehomed: Rehomed) -> None:
        self._cluster_min = ClusterMin(site.inputs, site.draft)
        self._lacks: dict[str, tuple[int, str]] = {}  # by pool: how many nodes, and why
        for wish in provisioners_now(site.inputs):
            if not wish.spec.suspend:
                staying = sum(site.fleet.pool(wish.spec.pool_name).staying.values())
                told = f"minSize is {wish.spec.min_size}, and {counted(staying, 'node')} would stay"
                self._lack(wish.spec.pool_name, wish.spec.min_size - staying, told)
        for each in site.draft.missing:
            if each.why == "demand":
                self._lack(each.pool, each.nodes, "pods wait for capacity")
            if each.why == "warmNodes":
                self._lack(each.pool, each.nodes, "its warm nodes are not all there")
        for evicted, _ in unreplaced(site.inputs) if rehomed.evicted_without_place else ():
            if evicted.uid in rehomed.evicted_without_place:
                self._lack(evicted.pool, 1, f"Pod/{evicted.title} was evicted lately and has no other place")

    def _lack(self, pool: str, nodes: int, told: str) -> None:
        if nodes > self._lacks.get(pool, (0, ""))[0]:
            self._lacks[pool] = nodes, told

    def why_kept(self, seen: Seen) -> Reason | None:
        """Each node makes up for one that is lacking."""
        if not seen.is_ready:
            return None
        if lack := self._cluster_min.why_kept(seen.node):
            self._cluster_min.give(seen.node)
            told = f"the cluster has {lack.left} of {lack.resource} without it, and clusterMin is {lack.least}"
            return why(seen, reasons.NEEDED_AGAIN, lacks="a node", why=told)
        nodes, told = self._lacks.get(seen.pool, (0, ""))
        if not nodes:
            return None
        self._lacks[seen.pool] = nodes - 1, told
        return why(seen, reasons.NEEDED_AGAIN, lacks=counted(nodes, "node"), why=told)
