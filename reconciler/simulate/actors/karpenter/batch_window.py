"""Owner of the batch window before provisioning, and of the resulting launches.

The window opens with the first pod and is extended by further pods, up to a maximum. Nothing is launched while a
claim is not launched yet. Pending pods are retried after an interval if anything relevant has changed.
"""

from collections.abc import Sequence

from reconciler.model import names
from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Ref
from reconciler.plan.nodes.eviction import stays_until
from reconciler.protocol.preconditions import Object
from reconciler.simulate.actors.karpenter.cluster_state import Knowledge, Name, NodePool
from reconciler.simulate.actors.karpenter.existing_nodes import overhead_of
from reconciler.simulate.actors.karpenter.lifecycle import BY, claim_of
from reconciler.simulate.actors.karpenter.machines import AGAIN_MS, BATCH_IDLE_MS, BATCH_MOST_MS, NODES, node_name_of
from reconciler.simulate.actors.karpenter.scheduling_round import NewNodeClaim, look, on_offer
from reconciler.simulate.objects import Key, ref_of, taints_of


class Purchasing:
    """Updated with changed pods and nodes."""

    def __init__(self, known: Knowledge) -> None:
        self._known = known
        self._engine = known.stage.engine
        self._gathered: dict[Key, None] = {}
        self._opened_at: Instant | None = None
        self._due = Instant(0)
        self._again_at: Instant | None = None
        self._bought = 0
        self._judged: tuple[set[Name], tuple[int, ...]] = set(), ()

    def changed(self, keys: Sequence[Key]) -> None:
        """Called with pods or nodes; pods that need a node open the window."""
        waiting = self._known.pods.waiting
        machines = self._known.machines
        for key in keys:
            kind, _, name = key
            node = machines.nodes.get(name) if kind == "Node" else None
            is_emptied = any(each["key"] == names.DISRUPTED for each in taints_of(node))
            needs = key[1:] in waiting if kind == "Pod" else is_emptied
            if needs and key not in self._gathered:
                self._gathered[key] = None
                self._gather()

    def buy(self, opened: Sequence[NewNodeClaim]) -> list[str]:
        """Creates NodeClaims and returns their names."""
        return [self._ask_for(each) for each in opened]

    def _gather(self) -> None:
        now = self._engine.now
        if self._opened_at is None:
            self._opened_at = now
        due = Instant(min(now + BATCH_IDLE_MS, self._opened_at + BATCH_MOST_MS))
        if due > self._due:
            self._due = due
            self._engine.at(due, "look for nodes", self._close)

    def _close(self) -> None:
        if self._opened_at is None or self._engine.now < self._due:
            return
        self._opened_at = None
        self._gathered.clear()
        self._look()
        self._look_again_later()

    def _look(self) -> None:
        known = self._known
        known.cloud.forget_shortages(known.now)
        if known.machines.unlaunched:
            return
        waiting, leaving = known.pods.waiting, displaced(known)
        called, stamp = {*waiting, *((pod.metadata.namespace, pod.name) for pod in leaving)}, known.stamp()
        if not called or (called <= self._judged[0] and stamp == self._judged[1]):
            return
        scheduling_result = look(known, [*known.pods.waiting_read(), *leaving])
        self._judged = called, stamp
        for claim in scheduling_result.claims:
            known.machines.nominate(claim, known.now)
        self.buy(scheduling_result.opened)

    def _look_again_later(self) -> None:
        """Schedules a retry for pending pods."""
        is_needed = bool(self._known.pods.waiting or self._known.machines.leaving)
        if is_needed and self._again_at is None:
            self._again_at = Instant(self._engine.now + AGAIN_MS)
            self._engine.at(self._again_at, "retry provisioning", self._again)

    def _again(self) -> None:
        self._again_at = None
        if self._known.pods.waiting or displaced(self._known):
            self._gather()
        else:
            self._look_again_later()

    def _ask_for(self, opened: NewNodeClaim) -> str:
        world, pool = self._known.world, opened.pool.name
        while True:
            self._bought += 1
            name = f"{pool}-{self._bought:05d}"
            if world.get(Ref("NodeClaim", "", name)) is None and world.get(Ref("Node", "", name)) is None:
                world.put(claim_of(opened, name, self._engine.now), BY)
                return name


def displaced(known: Knowledge) -> list[Pod]:
    """Pods on nodes that are being removed, if they will be evicted."""
    pods: list[Pod] = []
    for claim in known.machines.leaving_claims():
        pods += [pod for pod in known.pods.on(node_name_of(claim)) if needs_another_place(known, pod)]
    return pods


def needs_another_place(known: Knowledge, pod: Pod) -> bool:
    """Whether the pod will be evicted and recreated."""
    if not pod.is_reschedulable or stays_until(pod) > known.now:
        return False
    owner = pod.metadata.controller
    if pod.metadata.leaving and (owner is None or owner.kind != "StatefulSet"):
        return False
    # By the spec of a budget, regardless of its status.
    specs = [each.spec for each in known.budgets().of(pod)]
    return not any(each.max_unavailable in {0, "0%"} or each.min_available == "100%" for each in specs)


# --- NodePools of fixed size: machines are launched up to `replicas`, regardless of pods.
#
# Surplus machines are removed in this order: not launched, empty, fewest pods. As with Karpenter's feature gate
# StaticCapacity enabled; without it, such a NodePool has no effect.

_AGAIN_MS = 60_000


class Fixed:
    """Owner of the scheduled retry, while replicas could not be launched."""

    def __init__(self, known: Knowledge, purchasing: Purchasing) -> None:
        self._known = known
        self._purchasing = purchasing
        self._looks_again = False

    def changed(self) -> None:
        """Called when NodePools or claims have changed."""
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
            self._known.world.delete(ref_of(claim), BY)

    def _order_key(self, claim: Object) -> tuple[bool, int, str]:
        pods = self._known.pods.on(node_name_of(claim))
        name = claim["metadata"]["name"]
        return name not in self._known.machines.unlaunched, sum(pod.is_reschedulable for pod in pods), name

    def _look_again_later(self) -> None:
        if not self._looks_again:
            self._looks_again = True
            self._known.stage.engine.after(_AGAIN_MS, "retry missing replicas", self._again)

    def _again(self) -> None:
        self._looks_again = False
        self._known.cloud.forget_shortages(self._known.now)
        self.changed()


def counted(known: Knowledge, pool: NodePool) -> tuple[list[Object], int]:
    """The remaining claims of a NodePool, and how many of them only wait for their replacement."""
    machines = known.machines
    claims = {each["metadata"]["name"]: each for each in machines.of_pool(pool.name)}
    replaced = sum(name in machines.marked and name not in machines.leaving for name in claims)
    return [each for name, each in claims.items() if not machines.is_leaving(name)], replaced


def fresh(known: Knowledge, pool: NodePool, many: int) -> list[NewNodeClaim]:
    """New machines of the NodePool, as many as its limit allows."""
    sold = on_offer(pool, known)
    if not sold or not pool.is_varied(each.machine for each in sold):
        return []
    if NODES in pool.limits:
        many = min(many, pool.limits[NODES] - sum(1 for _ in known.machines.of_pool(pool.name)))
    overhead = overhead_of(known.daemons(), pool, known.snapshot())
    return [NewNodeClaim(f"{number:05d}", pool, sold, overhead) for number in range(max(0, many))]
