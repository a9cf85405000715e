"""What would keep a node that is to go: how many more GPUs in use, which percentage, or how many nodes kept empty.

A node that is the r-th to go is kept once fewer than r are. Each figure is the least that brings that about while all
else stays. The target never falls while more GPUs are in use, a lower percentage is asked for, or more is kept empty:
so it can be searched for by halves.
"""

from bisect import bisect_left
from collections.abc import Callable

import msgspec

from reconciler.model.plan.size_evaluation import SizeEvaluation
from reconciler.model.policy.node_provisioner import NodeProvisioner
from reconciler.plan.scaling.size import decide_size


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
