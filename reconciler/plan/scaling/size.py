"""How many nodes a pool shall keep.

With u GPUs in use of G, g a node, and p the least percentage that shall be in use: a pool is too large while
100 u < p G. The largest size that is full enough is ⌊100 u / (p g)⌋; it never undercuts the busy nodes and the
empty ones that are to be kept (minUnutilizedGPUNodes, warmNodes); of these only warmNodes are bought as well, so that
a pool may be wanted larger than it is. Where nodes differ in GPUs there is no such g: empty
nodes are taken away, in the order in which they would go, for as long as what is left is too large. Where they are
alike, both come to the same. All in integers: at the threshold itself a rounding would taint a node or not.
"""

import msgspec

from reconciler.model.kinds.node_provisioner import NodeProvisioner
from reconciler.model.pool_use import Use


class Size(msgspec.Struct, frozen=True, gc=False):
    """A target, what lies above it, and why."""

    target: int
    surplus: int
    reason: str
    by: str = "minGPUUtilizationPercent"  # the field that decides which nodes are too many


def decide_size(use: Use, wish: NodeProvisioner) -> Size:
    """The target for a pool whose demand is met."""
    wished, reason = _wished(use, wish)
    warm = use.needed_nodes + wish.warm_nodes if wish.warm_nodes else 0
    least = max(wish.min_size, warm)
    target = min(max(wished, least), wish.max_size)
    surplus = max(0, use.nodes - target)
    if target < wished:
        return Size(target, surplus, f"{reason}; maxSize allows {target}", "maxSize")
    if target > wished:
        reason = f"{reason}; {'minSize' if wish.min_size >= warm else 'warmNodes'} keeps {target}"
    return Size(target, surplus, reason)


def _wished(use: Use, wish: NodeProvisioner) -> tuple[int, str]:
    percent = wish.min_gpu_utilization_percent
    if not use.gpus_total:
        return use.nodes, "the pool has no GPUs"
    in_use = f"{_tenths_of_percent(use)} % in use"
    if 100 * use.gpus_used >= percent * use.gpus_total:
        return use.nodes, f"{in_use}, {percent} % wanted"
    full_enough = _full_enough(use, percent)
    # GPUs can be in use on a node without a pod that counts (lent to a claim): it is not empty.
    some = 1 if use.gpus_used else 0
    kept = min(max(use.needed_nodes + wish.spare_nodes, some), use.nodes)
    reason = f"{in_use}; {percent} % keeps at most {full_enough}"
    if kept > full_enough:
        return kept, f"{reason}, {kept} are busy or kept empty"
    return full_enough, reason


def _full_enough(use: Use, percent: int) -> int:
    if use.spare is None:
        return 100 * use.gpus_used // (percent * use.gpus_per_node)
    nodes, total = use.nodes, use.gpus_total
    for gpus in use.spare:
        if 100 * use.gpus_used >= percent * total:
            break
        nodes, total = nodes - 1, total - gpus
    return nodes


def _tenths_of_percent(use: Use) -> str:
    tenths = (2000 * use.gpus_used + use.gpus_total) // (2 * use.gpus_total)
    return f"{tenths // 10}.{tenths % 10}"
