"""NodePools of a fixed size: machines are bought until there are as many as `replicas` says, whether pods wait or not.

Where there are too many those go first that are not launched, then empty ones, then those with the fewest pods. As on a
cluster whose Karpenter has its feature StaticCapacity switched on: without it nothing comes of such a NodePool.
"""

from collections.abc import Iterable

from reconciler.model.plan.action import Ref
from reconciler.protocol.preconditions import Object
from reconciler.simulate.actors.karpenter.cluster_state import Knowledge
from reconciler.simulate.actors.karpenter.lifecycle import BY
from reconciler.simulate.actors.karpenter.machines import NODES
from reconciler.simulate.actors.karpenter.node_pools import NodePool
from reconciler.simulate.actors.karpenter.provisioning.batch_window import Purchasing
from reconciler.simulate.actors.karpenter.provisioning.new_claim import NewNodeClaim
from reconciler.simulate.actors.karpenter.provisioning.overhead import overhead_of
from reconciler.simulate.actors.karpenter.provisioning.scheduling_round import on_offer

_AGAIN_MS = 60_000


class Fixed:
    """Owner of whether it looks again later: while something is missing that could not be bought."""

    def __init__(self, known: Knowledge, purchasing: Purchasing) -> None:
        self._known = known
        self._purchasing = purchasing
        self._looks_again = False

    def changed(self) -> None:
        """NodePools or claims did."""
        for pool in self._known.pools.in_order():
            if pool.replicas is not None:
                self._keep(pool, pool.replicas)

    def _keep(self, pool: NodePool, wanted: int) -> None:
        running, replaced = counted(self._known, pool)
        if len(running) + replaced < wanted:
            bought = self._purchasing.buy(fresh(self._known, pool, wanted - len(running)))
            if len(running) + len(bought) < wanted:
                self._look_again_later()
        surplus = len(running) - wanted
        for claim in sorted(running, key=self._order_key)[: max(0, surplus)]:
            self._known.world.delete(Ref("NodeClaim", "", claim["metadata"]["name"]), BY)

    def _order_key(self, claim: Object) -> tuple[bool, int, str]:
        pods = self._known.pods.on((claim.get("status") or {}).get("nodeName", ""))
        name = claim["metadata"]["name"]
        return name not in self._known.machines.unlaunched, sum(pod.is_reschedulable for pod in pods), name

    def _look_again_later(self) -> None:
        if not self._looks_again:
            self._looks_again = True
            self._known.stage.engine.after(_AGAIN_MS, "look again for missing replicas", self._again)

    def _again(self) -> None:
        self._looks_again = False
        self._known.cloud.forget_shortages(self._known.now)
        self.changed()


def counted(known: Knowledge, pool: NodePool) -> tuple[list[Object], int]:
    """The claims of a NodePool that stay, and how many are only waiting for what replaces them."""
    machines = known.machines
    claims = list(machines.of_pool(pool.name))
    names: Iterable[str] = (each["metadata"]["name"] for each in claims)
    replaced = sum(name in machines.marked and name not in machines.leaving for name in names)
    return [each for each in claims if not machines.is_leaving(each["metadata"]["name"])], replaced


def fresh(known: Knowledge, pool: NodePool, many: int) -> list[NewNodeClaim]:
    """Machines as the NodePool would have them now: as many as its limit leaves."""
    sold = on_offer(pool, known)
    if not sold or not pool.is_varied(each.machine for each in sold):
        return []
    if NODES in pool.limits:
        many = min(many, pool.limits[NODES] - sum(1 for _ in known.machines.of_pool(pool.name)))
    overhead = overhead_of(known.daemons(), pool, known.snapshot())
    return [NewNodeClaim(f"{number:05d}", pool, sold, overhead) for number in range(max(0, many))]
