"""How many nodes a pool shall keep.

With u GPUs in use of G, g a node, and p the least percentage that shall be in use: a pool is too large while
100 u < p G. The largest size that is full enough is ⌊100 u / (p g)⌋; it never undercuts the busy nodes and the
empty ones that are to be kept (minUnutilizedGPUNodes, warmNodes); of these only warmNodes are bought as well, so that
a pool may be wanted larger than it is. Where nodes differ in GPUs there is no such g: empty
nodes are taken away, in the order in which they would go, for as long as what is left is too large. Where they are
alike, both come to the same. All in integers: at the threshold itself a rounding would taint a node or not.
"""

from bisect import bisect_left
from collections.abc import Callable
from typing import Literal

import msgspec

from reconciler.model.plan.evaluation import SizeEvaluation, Use
from reconciler.model.policy.scaling import NodeProvisioner

Bound = Literal["minSize", "warmNodes", "maxSize"]


class SizeReason(msgspec.Struct, frozen=True, gc=False, tag=True, omit_defaults=True):
    """How much of a pool is in use, and what follows for its size."""

    percent: int  # that shall be in use
    in_use_tenths: int | None = None  # tenths of a percent of its GPUs; None: the pool has no GPUs
    full_enough: int | None = None  # the largest size that is full enough; None: the pool is no larger than that
    kept: int | None = None  # busy nodes and empty ones that are kept, where these are more
    bound: Bound | None = None  # the field that allows no more, or keeps more
    bound_nodes: int = 0  # how many that allows or keeps


class Size(msgspec.Struct, frozen=True, gc=False):
    """A target, what lies above it, and why."""

    target: int
    surplus: int
    reason: SizeReason
    by: str = "minGPUUtilizationPercent"  # the field that decides which nodes are too many


def decide_size(use: Use, wish: NodeProvisioner) -> Size:
    """The target for a pool whose demand is met."""
    wished, reason = _wished(use, wish)
    warm = use.nodes_with_spare(wish.warm_nodes) if wish.warm_nodes else 0
    least = max(wish.min_size, warm)
    target = min(max(wished, least), wish.max_size)
    surplus = max(0, use.nodes - target)
    if target < wished:
        return Size(target, surplus, _bounded(reason, "maxSize", target), "maxSize")
    if target > wished:
        reason = _bounded(reason, "minSize" if wish.min_size >= warm else "warmNodes", target)
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
    full_enough = _full_enough(use, percent)
    # GPUs can be in use on a node without a pod that counts (lent to a claim): it is not empty.
    some = 1 if use.gpus_used else 0
    kept = min(max(use.nodes_with_spare(wish.spare_nodes), some), use.nodes)
    if kept > full_enough:
        return kept, SizeReason(percent, in_use, full_enough, kept)
    return full_enough, SizeReason(percent, in_use, full_enough)


def _full_enough(use: Use, percent: int) -> int:
    if use.spare is None:
        return 100 * use.gpus_used // (percent * use.gpus_per_node)
    nodes, total = use.nodes, use.gpus_total
    for gpus in use.spare:
        if 100 * use.gpus_used >= percent * total:
            break
        nodes, total = nodes - 1, total - gpus
    return nodes


def _tenths_of_percent(use: Use) -> int:
    return (2000 * use.gpus_used + use.gpus_total) // (2 * use.gpus_total)


# --- What becomes of the nodes of a pool for which pods wait, by number; and how many pods wait for one marked node.


class Growth(msgspec.Struct, frozen=True, gc=False, tag=True, omit_defaults=True):
    """Of the nodes that a pool is wanted with, those that pods are served by."""

    kept: int = 0  # marked before
    arriving: int = 0
    asked: int = 0  # by smart pods
    bought: int = 0
    warm: int = 0  # to be bought, and kept warm


class Claimants(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Pods that a marked node is kept for."""

    pods: int = 0  # 0: how many is not known
    are_evicted: bool = False  # they were evicted lately, and nobody has made them anew yet


# --- What would keep a node that is to go: how many more GPUs in use, which percentage, or how many nodes kept empty.
#
# A node that is the r-th to go is kept once fewer than r are. Each figure is the least that brings that about while all
# else stays. The target never falls while more GPUs are in use, a lower percentage is asked for, or more is kept empty:
# so it can be searched for by halves.


class KeptIf(msgspec.Struct, frozen=True, gc=False):
    """None: no such figure would keep it."""

    gpus_used: int | None  # in use in all, at least
    percent: int | None  # minGPUUtilizationPercent, at most
    unutilized: int | None  # minUnutilizedGPUNodes, at least


def kept_if(evaluated: SizeEvaluation, wish: NodeProvisioner, rank: int) -> KeptIf:
    """For the `rank`-th of the nodes that go, counted from 1."""
    use = evaluated.use
    enough = use.nodes - evaluated.leaving_otherwise - rank + 1  # a target by which it is kept

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
    """The first that does, where all after it do too."""
    at = bisect_left(among, True, key=keeps)
    return among[at] if at < len(among) else None
