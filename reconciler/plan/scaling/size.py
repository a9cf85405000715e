"""Wanted size of a pool.

With u GPUs in use of G in total, g GPUs per node, and a minimum utilization of p percent, a pool is too large while
100 u < p G. The largest size that is full enough is ⌊100 u / (p g)⌋. The size is never less than the busy nodes plus
the empty nodes to keep (minUnutilizedGPUNodes, warmNodes). Only warmNodes are also bought, so a pool may be wanted
larger than it is. If nodes have different numbers of GPUs, there is no such g: empty nodes are removed in removal
order while the remaining nodes are too many, and busy nodes stay. For equal nodes both methods give the same target.
All figures are integers, because a rounding error at the threshold would decide about a taint.
"""

from bisect import bisect_left
from collections.abc import Callable
from typing import Literal

import msgspec

from reconciler.model.plan.evaluation import SizeEvaluation, Use
from reconciler.model.policy.scaling import NodeProvisioner, SizeField, bounded_size, largest_full_size

Bound = SizeField | Literal["warmNodes"]


class SizeReason(msgspec.Struct, frozen=True, gc=False, tag=True, omit_defaults=True):
    """Utilization of a pool, and the resulting size."""

    percent: int  # minimum utilization
    in_use_tenths: int | None = None  # utilization of its GPUs in tenths of a percent; None: the pool has no GPUs
    full_enough: int | None = None  # largest size that is full enough; None: the pool is full enough
    kept: int | None = None  # busy nodes plus empty nodes to keep, if these are more
    bound: Bound | None = None  # field that limits or raises the size
    bound_nodes: int = 0  # number of nodes by that field


class Size(msgspec.Struct, frozen=True, gc=False):
    """Target size, surplus nodes, and the reason."""

    target: int
    surplus: int
    reason: SizeReason
    by: str = "minGPUUtilizationPercent"  # field that decides how many nodes are surplus


def decide_size(use: Use, wish: NodeProvisioner) -> Size:
    """Target for a pool without unmet demand."""
    wished, reason = _wished(use, wish)
    warm = use.nodes_with_spare(wish.warm_nodes) if wish.warm_nodes else 0
    bounded = bounded_size(wish, max(wished, warm))
    target = bounded.nodes
    surplus = max(0, use.nodes - target)
    if target < wished:
        return Size(target, surplus, _bounded(reason, "maxSize", target), "maxSize")
    if target > wished:
        is_warm = warm > bounded_size(wish, wished).nodes
        reason = _bounded(reason, "warmNodes" if is_warm else bounded.lack.field, target)
    return Size(target, surplus, reason)


def _bounded(reason: SizeReason, bound: Bound, nodes: int) -> SizeReason:
    return msgspec.structs.replace(reason, bound=bound, bound_nodes=nodes)


def _wished(use: Use, wish: NodeProvisioner) -> tuple[int, SizeReason]:
    percent = wish.min_gpu_utilization_percent
    if not use.gpus_total:
        return use.nodes, SizeReason(percent)
    in_use = _tenths_of_percent(use)
    if 100 * use.gpus_used >= percent * use.gpus_total:
        return use.nodes, SizeReason(percent, in_use)
    full_enough = _full_enough(use, wish)
    # A node may have GPUs in use without a workload pod (lent to a claim): that node is not empty.
    some = 1 if use.gpus_used else 0
    kept = min(max(use.nodes_with_spare(wish.kept_free_nodes), some), use.nodes)
    if kept > full_enough:
        return kept, SizeReason(percent, in_use, full_enough, kept)
    return full_enough, SizeReason(percent, in_use, full_enough)


def _full_enough(use: Use, wish: NodeProvisioner) -> int:
    """Of nodes with different numbers of GPUs, only empty ones are taken away."""
    if use.spare is None:
        return largest_full_size(wish, use.gpus_used, use.gpus_per_node)
    percent, nodes, total = wish.min_gpu_utilization_percent, use.nodes, use.gpus_total
    for gpus in use.spare:
        if 100 * use.gpus_used >= percent * total:
            break
        nodes, total = nodes - 1, total - gpus
    return nodes


def _tenths_of_percent(use: Use) -> int:
    return (2000 * use.gpus_used + use.gpus_total) // (2 * use.gpus_total)


# --- How a pool serves waiting pods, as numbers of nodes; and how many pods wait for a marked node.


class Growth(msgspec.Struct, frozen=True, gc=False, tag=True, omit_defaults=True):
    """Nodes in the wanted size that serve waiting pods."""

    kept: int = 0  # marked nodes that are kept
    arriving: int = 0
    asked: int = 0  # requested by smart pods
    bought: int = 0
    warm: int = 0  # to buy, and to keep warm


class Claimants(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Pods that a marked node is kept for."""

    pods: int = 0  # 0: unknown number
    are_evicted: bool = False  # recently evicted pods that were not recreated yet


# --- What would keep a surplus node: more GPUs in use, a lower percentage, or more nodes kept empty.
#
# The r-th node in removal order is kept when fewer than r nodes are surplus. Each figure is the smallest change that
# keeps the node while everything else stays the same. The target never falls when more GPUs are in use, the percentage
# is lower, or more nodes are kept empty, so bisection finds the figure.


class KeptIf(msgspec.Struct, frozen=True, gc=False):
    """None: no value of that figure would keep the node."""

    gpus_used: int | None  # minimum of GPUs in use in total
    percent: int | None  # maximum of minGPUUtilizationPercent
    unutilized: int | None  # minimum of minUnutilizedGPUNodes


def kept_if(evaluated: SizeEvaluation, wish: NodeProvisioner, rank: int) -> KeptIf:
    """Figures for the `rank`-th node in removal order, counted from 1."""
    use = evaluated.use
    enough = use.nodes - evaluated.leaving_otherwise - rank + 1  # smallest target that keeps the node

    def by_gpus(gpus: int) -> bool:
        return decide_size(msgspec.structs.replace(use, gpus_used=gpus), wish).target >= enough

    def by_percent(lower: int) -> bool:
        percent = wish.min_gpu_utilization_percent - lower
        return decide_size(use, msgspec.structs.replace(wish, min_gpu_utilization_percent=percent)).target >= enough

    def by_unutilized(nodes: int) -> bool:
        return decide_size(use, msgspec.structs.replace(wish, min_unutilized_gpu_nodes=nodes)).target >= enough

    lower = _least(range(1, wish.min_gpu_utilization_percent + 1), by_percent)
    return KeptIf(
        gpus_used=_least(range(use.gpus_used + 1, use.gpus_total + 1), by_gpus),
        percent=None if lower is None else wish.min_gpu_utilization_percent - lower,
        unutilized=_least(range(wish.min_unutilized_gpu_nodes + 1, use.nodes + 1), by_unutilized),
    )


def _least(among: range, keeps: Callable[[int], bool]) -> int | None:
    """First value that satisfies `keeps`, if all later values do too."""
    at = bisect_left(among, True, key=keeps)
    return among[at] if at < len(among) else None
