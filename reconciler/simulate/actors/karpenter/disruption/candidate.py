"""Nodes that Karpenter may take away now: ready, not on their way out, and with nothing on them that holds them."""

from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from reconciler.model import names
from reconciler.model.cluster.pod import Pod
from reconciler.plan.karpenter.budgets import allowed_at_once
from reconciler.plan.karpenter.outlook import held_by, moving_pods
from reconciler.plan.karpenter.survey import Surveyed
from reconciler.protocol.preconditions import Object
from reconciler.simulate.actors.karpenter.cluster_state import Knowledge
from reconciler.simulate.actors.karpenter.conditions import INITIALIZED, says, since
from reconciler.simulate.actors.karpenter.node_pools import NodePool

_UNLIMITED = 10**9


class Candidate(msgspec.Struct, frozen=True):
    """One node."""

    name: str  # of its claim
    claim: Object
    node: Object
    pool: NodePool
    pods: tuple[Pod, ...]  # that need another place once it goes
    micro_dollars_per_hour: int

    @property
    def labels(self) -> Mapping[str, str]:
        result: Mapping[str, str] = self.node["metadata"].get("labels") or {}
        return result

    @property
    def saves_most(self) -> tuple[float, str]:
        """The dearest for what it disrupts first."""
        return -self.micro_dollars_per_hour / (1 + len(self.pods)), self.name


def candidate(known: Knowledge, claim: Object, pool: NodePool, eventual: bool = False) -> Candidate | None:
    """None where it may not go now; `eventual`: whatever its pods say, if their time is bounded."""
    name, node = claim["metadata"]["name"], known.machines.node_of(claim)
    machines = known.machines
    if node is None or not says(claim, INITIALIZED):
        return None
    if machines.is_leaving(name) or machines.is_nominated(name, known.now):
        return None
    if (node["metadata"].get("annotations") or {}).get(names.DO_NOT_DISRUPT) == "true":
        return None
    there = node["metadata"]["name"]
    seen = known.world.read_object(("NodeClaim", "", name)), known.world.read_object(("Node", "", there))
    surveyed_node = Surveyed(*seen, known.pods.on(there), known.now)
    is_bounded = eventual and surveyed_node.bound_seconds is not None
    if not is_bounded and held_by(surveyed_node, known.budgets()):
        return None
    return Candidate(name, claim, node, pool, tuple(moving_pods(surveyed_node)), _price(known, node))


def left_in_budgets(known: Knowledge, reason: str) -> dict[str, int]:
    """How many nodes more each NodePool lets go now; those that let none go are missing."""
    result: dict[str, int] = {}
    for pool in known.pools.in_order():
        if allowed_at_once(pool.spec, 1, reason, known.now) == 0:
            continue
        many = known.machines.many(pool.name)
        allowed = allowed_at_once(pool.spec, many, reason, known.now) if many else 0
        left = (_UNLIMITED if allowed is None else allowed) - known.machines.disrupted(pool.name)
        if left > 0:
            result[pool.name] = left
    return result


def consolidatable(
    known: Knowledge, budgets: Mapping[str, int], among: Callable[[NodePool], Iterable[Object]]
) -> Iterator[Candidate]:
    """Those of NodePools with a budget left that have been quiet for long enough, of the claims that are `among`."""
    for pool in known.pools.in_order():
        quiet_ms = pool.consolidate_after_ms
        if quiet_ms is None or pool.replicas is not None or pool.name not in budgets:
            continue
        for claim in among(pool):
            if is_quiet(known, claim, quiet_ms) and (found := candidate(known, claim, pool)) is not None:
                yield found


def is_quiet(known: Knowledge, claim: Object, quiet_ms: int) -> bool:
    """Whether no pod came or went there for so long."""
    return known.now - last_stir(known, claim) >= quiet_ms


def last_stir(known: Knowledge, claim: Object) -> int:
    """When a pod last came or went there, or else when it was ready for some."""
    from_claim = since(claim, INITIALIZED)
    return known.pods.stirred((claim.get("status") or {}).get("nodeName", "")) or from_claim


def _price(known: Knowledge, node: Object) -> int:
    labels = node["metadata"].get("labels") or {}
    machine = known.cloud.types.get(labels.get(names.INSTANCE_TYPE, ""))
    where = labels.get(names.ZONE, ""), labels.get(names.CAPACITY_TYPE, "")
    for each in machine.offerings if machine is not None else ():
        if (each.zone, each.capacity_type) == where:
            return each.micro_dollars_per_hour
    return 0
