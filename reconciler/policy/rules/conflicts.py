"""Policies that would fight one another."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TypeVar

from reconciler.model.desired import Declared
from reconciler.model.policy.drain_policy import DrainPolicy
from reconciler.model.policy.gpu_pool import GpuPool
from reconciler.model.policy.node_provisioner import NodeProvisioner
from reconciler.model.policy.pressure_policy import PressurePolicy
from reconciler.model.problem import Problem
from reconciler.policy.rules.context import RuleContext

Policy = TypeVar("Policy", NodeProvisioner, DrainPolicy, PressurePolicy)
Named = TypeVar("Named", DrainPolicy, PressurePolicy)


def active(policies: Sequence[Declared[Policy]]) -> list[Declared[Policy]]:
    """Those that are not set aside: a suspended policy fights nobody."""
    return [each for each in policies if not each.spec.suspend]


def one_provisioner_a_pool(wish: RuleContext) -> Iterator[Problem]:
    """Two would scale the pool to two sizes."""
    first: dict[str, Declared[NodeProvisioner]] = {}
    for each in active(wish.desired.provisioners):
        other = first.setdefault(each.spec.pool_name, each)
        if other is not each:
            text = f"the pool {each.spec.pool_name} is scaled by NodeProvisioner/{other.name} already"
            remedy = f"see {wish.place(other)}; one pool has one provisioner"
            yield wish.problem(each, "spec.poolName", ("RC302", text, remedy))


def one_order_for_the_same_pods(wish: RuleContext) -> Iterator[Problem]:
    """Of two pools whose nodes are alike to a pod, it must be plain which one is asked first."""
    first: dict[object, Declared[NodeProvisioner]] = {}
    for each in active(wish.desired.provisioners):
        pool = wish.desired.pool(each.spec.pool_name)
        if pool is None:
            continue
        other = first.setdefault((each.spec.order, _visible_to_pods(pool.spec)), each)
        if other is not each and other.spec.pool_name != each.spec.pool_name:
            text = f"the same pods fit the pool of NodeProvisioner/{other.name}, which has order {each.spec.order} too"
            remedy = f"see {wish.place(other)}; give one of them another order"
            yield wish.problem(each, "spec.order", ("RC303", text, remedy))


def _visible_to_pods(pool: GpuPool) -> object:
    """What of a pool a pod's affinity, tolerations and requests can tell apart."""
    taints = sorted((taint.key, taint.value, taint.effect) for taint in pool.taints)
    demands = sorted((each.key, each.operator, tuple(sorted(each.values))) for each in pool.requirements)
    return pool.devices.model, pool.devices.count, tuple(taints), tuple(demands), tuple(sorted(pool.labels.items()))


def one_drain_policy_a_pool(wish: RuleContext) -> Iterator[Problem]:
    """Two would count the same nodes against two limits."""
    yield from _one_a_pool(wish, wish.desired.drains, "RC308", "drained")


def one_pressure_policy_a_pool(wish: RuleContext) -> Iterator[Problem]:
    """Two would give the same node two watermarks."""
    yield from _one_a_pool(wish, wish.desired.pressures, "RC309", "watched for pressure")


def _one_a_pool(wish: RuleContext, policies: Sequence[Declared[Named]], code: str, done: str) -> Iterator[Problem]:
    claimed: dict[str, Declared[Named]] = {}
    for each in active(policies):
        doubly: dict[str, list[str]] = defaultdict(list)
        for pool in wish.pools_named(each.spec.pool_names):
            other = claimed.setdefault(pool.name, each)
            if other is not each:
                doubly[other.name].append(pool.name)
        for name, pools in sorted(doubly.items()):
            other = claimed[pools[0]]
            text = f"{_named(pools)} {done} by {each.kind}/{name} already"
            remedy = f"see {wish.place(other, 'spec.poolNames')}; name each pool in one of them only"
            yield wish.problem(each, "spec.poolNames", (code, text, remedy))


def _named(pools: Sequence[str]) -> str:
    shown = ", ".join(pools[:3]) + (f" and {len(pools) - 3} more" if len(pools) > 3 else "")
    return f"the pool {shown} is" if len(pools) == 1 else f"the pools {shown} are"


def thresholds_below_targets(wish: RuleContext) -> Iterator[Problem]:
    """A node that drain may empty must be one that scaling would not keep for its use."""
    targets = {each.spec.pool_name: each for each in active(wish.desired.provisioners)}
    for drain in active(wish.desired.drains):
        threshold = drain.spec.utilization_threshold_percent
        for pool in wish.pools_named(drain.spec.pool_names):
            provisioner = targets.get(pool.name)
            if provisioner is None:
                continue
            target = provisioner.spec.min_gpu_utilization_percent
            if threshold >= target:
                text = (
                    f"utilizationThresholdPercent {threshold} must stay below minGPUUtilizationPercent {target} "
                    f"of NodeProvisioner/{provisioner.name}"
                )
                remedy = f"see {wish.place(provisioner, 'spec.minGPUUtilizationPercent')}"
                remedy += f"; write at most {target - 1}" if target > 0 else "; nothing is ever below that"
                yield wish.problem(drain, "spec.utilizationThresholdPercent", ("RC304", text, remedy))


def room_for_the_largest_size(wish: RuleContext) -> Iterator[Problem]:
    """What a provisioner may grow to must fit into its pool's limits."""
    for each in active(wish.desired.provisioners):
        pool = wish.desired.pool(each.spec.pool_name)
        if pool is None:
            continue
        gpus = pool.spec.devices.count
        for resource, per_node in (("nodes", 1), ("nvidia.com/gpu", gpus)):
            limit = pool.spec.limits.get(resource)
            needed = each.spec.max_size * per_node
            if limit is not None and limit.milli < needed * 1000:
                size = f"maxSize {each.spec.max_size}" + (f" of {gpus} GPUs each" if resource != "nodes" else "")
                text = f"{size} needs {needed} {resource}, and the limits of GpuPool/{pool.name} allow {limit}"
                remedy = f"see {wish.place(pool, f'spec.limits.{resource}')}; lower maxSize, or raise the limit"
                yield wish.problem(each, "spec.maxSize", ("RC305", text, remedy))
