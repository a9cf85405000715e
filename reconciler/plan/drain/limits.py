"""Limits on drains: the size that a pool must keep, and the number of nodes that may leave at once.

With u GPUs in use of G in total, g GPUs per node, and a minimum utilization of p percent, a pool with a
NodeProvisioner keeps

    max(⌊100 u / (p g)⌋, ⌈u / g⌉ + spare, minSize)    while 100 u < p G, else all its nodes;

where spare is max(minUnutilizedGPUNodes, warmNodes). The result is never more than maxSize.

Scaling has the same target once the pods are packed closely. Drains take at most the nodes above that target, minus
the nodes that leave already for any reason. If nodes have different numbers of GPUs, g is the lowest number, which
keeps more nodes. A pool without a provisioner has no such floor. An unready node serves nobody, so only minSize
keeps unready nodes. All figures are integers.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec
from msgspec.structs import replace

from reconciler.model import names
from reconciler.model.desired import Declared
from reconciler.model.plan.decision import Delete, Facts, Ref, Taint
from reconciler.model.policy.scaling import BoundedSize, DrainPolicy, NodeProvisioner, bounded_size, largest_full_size
from reconciler.plan.drain.codes.candidacy import LargestParallelismReached, ParallelismReached, Throttled
from reconciler.plan.drain.codes.words import Floor, FloorRule
from reconciler.plan.drain.context import DrainContext, DrainNode, ref_of_policy
from reconciler.plan.drain.marks import SOFT
from reconciler.plan.guards.observing import observes
from reconciler.plan.nodes.ownership import closed_nodes


class PoolDrainBudget(msgspec.Struct, frozen=True, gc=False):
    """Drain budget of one pool."""

    provisioner: Ref
    least: BoundedSize  # of a pool without nodes in use
    size: int
    leaving: int
    floor: Floor

    def floor_for(self, drain_node: DrainNode) -> Floor:
        """Number of nodes that must stay if this node leaves, and the rule that decides."""
        return (
            self.floor if drain_node.is_ready else replace(self.floor, nodes=self.least.nodes, by=self.least.lack.field)
        )

    def left(self, drain_node: DrainNode) -> int:
        """Number of further nodes like this that may leave."""
        return max(0, self.size - self.leaving - self.floor_for(drain_node).nodes)


def budgets_of(context: DrainContext) -> dict[str, PoolDrainBudget]:
    """Budgets by pool, without pools that no NodeProvisioner scales."""
    wishes = context.provisioner_of
    leaving: dict[str, int] = {}
    for each in context.drain_nodes if wishes else ():
        leaving[each.pool] = leaving.get(each.pool, 0) + context.leaves_after_plan(each)
    return {
        pool: _budget(context, pool, wishes[pool], leaving.get(pool, 0)) for pool in context.policy_of if pool in wishes
    }


def _budget(context: DrainContext, pool: str, wish: Declared[NodeProvisioner], leaving: int) -> PoolDrainBudget:
    totals = context.fleet.pool(pool)
    gpus, fewest = (totals.gpus_used, totals.gpus_total), _fewest(totals.sorts)
    floor = floor_of(wish.spec, len(totals.nodes), gpus, fewest, closed_nodes(totals))
    return PoolDrainBudget(
        Ref("NodeProvisioner", "", wish.name), bounded_size(wish.spec, 0), len(totals.nodes), leaving, floor
    )


def floor_of(wish: NodeProvisioner, size: int, gpus: tuple[int, int], gpus_per_node: int, closed: int = 0) -> Floor:
    """Number of nodes that a pool keeps, and the rule that decides. `gpus`: in use, and in total."""
    used, total = gpus
    percent, spare = wish.min_gpu_utilization_percent, wish.kept_free_nodes
    all_of_them = Floor(size, "gpuUtilization", used, total, gpus_per_node, percent, spare, closed)
    if 100 * used >= percent * total or not gpus_per_node:
        return all_of_them
    full_enough, packed = largest_full_size(wish, used, gpus_per_node), all_of_them.with_spare(spare)
    bounded = bounded_size(wish, max(full_enough, packed))
    nodes = bounded.nodes
    by: FloorRule = "minGPUUtilizationPercent"
    if nodes == wish.min_size:
        by = "minSize"
    elif nodes == packed:
        by = "warmNodes" if wish.warm_nodes > wish.min_unutilized_gpu_nodes else "minUnutilizedGPUNodes"
    elif bounded.field is not None:
        by = bounded.field
    return replace(all_of_them, nodes=nodes, by=by)


def _fewest(sorts: Mapping[int, int]) -> int:
    return min((gpus for gpus, nodes in sorts.items() if gpus and nodes), default=0)


_LEAVING, _DRAINING = "maxScaleDownParallelism", "maxDrainParallelism"


class Slots:
    """Free slots for nodes that begin to leave: for each policy in its pools, and in total at most the largest limit of
    any policy. Deletions by scaling take slots too, but do not wait for slots. Mutable.
    """

    def __init__(self, context: DrainContext) -> None:
        self.draining: dict[str, int] = dict.fromkeys((each.name for each in context.policies), 0)
        self.leaving: dict[str, int] = dict.fromkeys(self.draining, 0)
        # by policy and whether pods move, valid until a node takes a slot
        self._full: dict[tuple[str, bool], Facts | None] = {}
        self._context = context
        self._most_drained = max((each.spec.max_drain_parallelism for each in context.policies), default=0)
        self._most_leaving = max((each.spec.max_scale_down_parallelism for each in context.policies), default=0)
        drained, counting = context.draining, context.fleet.occupancy.counting
        taken = context.drain_nodes if context.draft.has_claims else ()
        leaving = {*_leaving_now(context), *(each.name for each in taken if _is_taken_now(context, each))}
        for name, policy in _policies_of(context, leaving | drained.keys()):
            self.leaving[policy] += 1
            self.draining[policy] += name in drained and counting[name] > 0

    def why_none(self, drain_node: DrainNode) -> Facts | None:
        """The limit that is reached; None if there is a slot. An empty node needs no slot of maxDrainParallelism."""
        key = drain_node.policy.name, not self._context.is_empty(drain_node)
        if key not in self._full:
            self._full[key] = self._why_full(drain_node.policy, drains=key[1])
        return self._full[key]

    def both_taken(self, policy: Declared[DrainPolicy], waiting: int) -> Throttled | None:
        """Both limits, if no node may leave and no node may be drained: the limits of the policy, or of all policies.
        `waiting`: number of waiting nodes.
        """
        spec, name = policy.spec, policy.name
        leaving = (self.leaving[name], spec.max_scale_down_parallelism), (self._all(self.leaving), self._most_leaving)
        draining = (self.draining[name], spec.max_drain_parallelism), (self._all(self.draining), self._most_drained)
        leave, drain = (next((each for each in pairs if each[0] >= each[1]), None) for pairs in (leaving, draining))
        if leave is None or drain is None:
            return None
        return Throttled(
            policy=ref_of_policy(policy),
            draining=drain[0],
            leaving=leave[0],
            most_drained=drain[1],
            most_leaving=leave[1],
            waiting=waiting,
        )

    @staticmethod
    def _all(counts: Mapping[str, int]) -> int:
        return sum(counts.values())

    def _why_full(self, policy: Declared[DrainPolicy], *, drains: bool) -> Facts | None:
        spec, name = policy.spec, policy.name
        limits = (
            (True, self.leaving[name], spec.max_scale_down_parallelism, ParallelismReached, _LEAVING),
            (drains, self.draining[name], spec.max_drain_parallelism, ParallelismReached, _DRAINING),
            (True, self._all(self.leaving), self._most_leaving, LargestParallelismReached, _LEAVING),
            (drains, self._all(self.draining), self._most_drained, LargestParallelismReached, _DRAINING),
        )
        full = (
            code(field=field, most=most, leaving=count)
            for holds, count, most, code, field in limits
            if holds and count >= most
        )
        return next(full, None)

    def take(self, drain_node: DrainNode, count: int = 1) -> None:
        """Take a slot, or give a slot back with -1."""
        self._full.clear()
        self.leaving[drain_node.policy.name] += count
        self.draining[drain_node.policy.name] += 0 if self._context.is_empty(drain_node) else count


def _leaving_now(context: DrainContext) -> Iterator[str]:
    """Nodes that are being deleted, or that scaling has tainted against new pods shortly before their deletion."""
    for facts in context.fleet.nodes_unsettled:
        taint = facts.node.taint(names.DELETION_TIME)
        is_near = taint is not None and taint.effect != SOFT and not observes(context.inputs, facts.pool)
        if facts.is_leaving or is_near:
            yield facts.name


def _is_taken_now(context: DrainContext, drain_node: DrainNode) -> bool:
    """Whether scaling deletes the node or taints the node against new pods in this plan."""
    if not context.is_taken(drain_node) or context.is_report_only(drain_node):
        return False
    act = context.draft.act_on(drain_node.ref)
    return isinstance(act, Delete) or (isinstance(act, Taint) and act.value is not None and act.effect != SOFT)


def _policies_of(context: DrainContext, nodes: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Nodes in pools that a policy names, with the policy."""
    for name in nodes:
        node = context.fleet.node(name)
        if node is not None and node.pool in context.policy_of:
            yield name, context.policy_of[node.pool].name
