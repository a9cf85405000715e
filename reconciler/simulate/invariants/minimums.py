"""What pools are to keep, drains leave there; and what the cluster is to keep, nobody here takes.

Of a pool that is scaled so many nodes are kept as scaling would keep once everything is packed closely (design: who
removes a node); the formula stands here once more. What others took away, or placed, in the last minute may not have
been known: whatever is found here is too much by what was.
"""

from collections.abc import Iterator

import msgspec

from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.instant import Instant, moment
from reconciler.model.policy.node_provisioner import NodeProvisioner
from reconciler.model.quantity import Quantity
from reconciler.protocol.preconditions import Object
from reconciler.simulate.invariants.by_time import min_size_at, spare_at
from reconciler.simulate.invariants.drains import begins
from reconciler.simulate.invariants.invariant import InvariantContext, goes, is_marked, is_ours, pool_of, taints_of
from reconciler.simulate.invariants.ownership import OBSERVED_WITHIN_MS
from reconciler.simulate.objects import ObjectWrite


class _Lost(msgspec.Struct, frozen=True, gc=False):
    """A node that somebody took away, or is about to."""

    at: Instant
    node: Object
    is_ours: bool


class LeastKept:
    """Judged as each drain begins, and of the cluster as scaling marks a node as well."""

    rule = "no drain takes what a pool is to keep, and nothing takes what the cluster is to keep"
    kinds = ("Node",)

    def __init__(self) -> None:
        self._lately: list[_Lost] = []

    def wrote(self, written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
        now = context.now()
        self._lately = [each for each in self._lately if now - each.at < OBSERVED_WITHIN_MS]
        if written.before is not None and _is_lost(written):
            self._lately.append(_Lost(now, written.before, is_ours(written)))
        if begins(written):
            yield from self._pool(written.key[2], context)
        if is_ours(written) and is_marked(written):
            yield from self._cluster(written.key[2], context)

    def _pool(self, name: str, context: InvariantContext) -> Iterator[str]:
        pool = context.where.nodes[name].pool
        wishes = (each.spec for each in context.desired().provisioners if each.spec.pool_name == pool)
        wish = next((each for each in wishes if not each.suspend), None)
        if wish is None:
            return
        there = [each for each, node in context.where.nodes.items() if node.pool == pool and not node.is_leaving]
        leaving = sum(_is_leaving(context.world.at(("Node", "", each))) for each in there)
        unknown = sum(pool_of(each.node) == pool for each in self._lately)
        serves = _may_serve(context.world.at(("Node", "", name)) or {}, context.now())
        kept, floor = len(there) - leaving + unknown, self._floor(wish, there, context) if serves else wish.min_size
        if kept < floor:
            yield f"Node/{name} begins to be drained: {kept} nodes of {pool} stay, and {floor} are to be kept"

    def _floor(self, wish: NodeProvisioner, there: list[str], context: InvariantContext) -> int:
        where, percent = context.where, wish.min_gpu_utilization_percent
        used = sum(self._used(each, context) for each in there)
        total = sum(where.nodes[each].gpus for each in there)
        each_has = min((where.nodes[each].gpus for each in there if where.nodes[each].gpus), default=0)
        if not each_has or (100 * used >= percent * total and not self._lately):
            return len(there)
        now = context.now()
        # A schedule that begins now may not be known yet.
        spare, least = (min(of(wish, at) for at in (now, _a_minute_before(now))) for of in (spare_at, min_size_at))
        closely = -(-used // each_has) + spare
        return min(max(100 * used // (percent * each_has), closely, least), wish.max_size)

    def _used(self, node: str, context: InvariantContext) -> int:
        where, now = context.where, context.now()
        known = [key for key in where.pods_on(node) if now - where.placed.get(key, now) >= OBSERVED_WITHIN_MS]
        return min(where.nodes[node].gpus, sum(where.pods[key].gpus for key in known))

    def _cluster(self, name: str, context: InvariantContext) -> Iterator[str]:
        """By the largest clusterMin of all policies. What others took in the last minute may not have been known."""
        policies = [each.spec for each in context.desired().drains if not each.spec.suspend]
        for resource in sorted({resource for each in policies for resource in each.cluster_min}):
            least = max(each.cluster_min[resource].milli for each in policies if resource in each.cluster_min)
            there = [each for each in context.world.of("Node") if not _is_leaving(each)]
            there += [each.node for each in self._lately if not each.is_ours]
            left = sum(_has(each, resource) for each in there)
            if left < least and _has(context.world.at(("Node", "", name)) or {}, resource):
                yield f"Node/{name} is to go: {left} m of {resource} stay, and clusterMin is {least} m"


def _may_serve(node: Object, now: Instant) -> bool:
    """Whether it is ready, and was so long enough for that to be known: of others minSize alone keeps any."""
    found: Node = msgspec.convert(node, Node)
    turned = [moment(each.last_transition_time) or 0 for each in found.status.conditions if each.type == "Ready"]
    return found.is_ready and all(now - at >= OBSERVED_WITHIN_MS for at in turned)


def _a_minute_before(now: Instant) -> Instant:
    return Instant(now - OBSERVED_WITHIN_MS)


def _is_lost(written: ObjectWrite) -> bool:
    """Whether somebody takes the node away by this write, and it is no drain that begins."""
    if begins(written):
        return False
    return goes(written) or is_marked(written) or (_is_leaving(written.after) and not _is_leaving(written.before))


def _is_leaving(node: Object | None) -> bool:
    """Whether somebody takes it away."""
    if node is None or node["metadata"].get("deletionTimestamp"):
        return True
    return bool(taints_of(node)) or _is_disrupted(node)


def _is_disrupted(node: Object) -> bool:
    return any(each["key"] == names.DISRUPTED for each in (node.get("spec") or {}).get("taints") or ())


def _has(node: Object, resource: str) -> int:
    amount = ((node.get("status") or {}).get("allocatable") or {}).get(resource)
    return Quantity.parse(str(amount)).milli if amount is not None else 0
