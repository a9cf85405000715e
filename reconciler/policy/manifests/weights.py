"""Weights of NodePools: Karpenter tries overlapping NodePools in the order of their NodeProvisioners.

Theory of operation. Karpenter buys for a pod from the NodePool of the highest weight that fits. The planner asks pools
by the `order` of their NodeProvisioners. So that both choose the same pool, each group of overlapping pools is ranked
by order and name: the last pool has weight 1, and each pool before it has 1 more.

Two pools overlap if each pod that tolerates the taints of one tolerates the taints of the other. Labels and
requirements do not separate pools, since a pod that selects nothing fits both.

A pool has no derived weight if its policy has a weight, if no NodeProvisioner names it, or if it has no taints: with a
weight above 0 a pool without taints would come before the NodePools of pods that need no GPU.
"""

from collections.abc import Iterator

from reconciler.model.desired import Declared, Desired
from reconciler.model.policy.gpu_pool import GpuPool

MOST = 100  # Karpenter's largest weight

_Ranked = tuple[int, str, Declared[GpuPool]]  # order and name of the NodeProvisioner, and its pool
_Taints = frozenset[tuple[str, str, str]]


def weights_of(desired: Desired) -> dict[str, int]:
    """The derived weights, by pool. Pools of a group that is too large have none; see `overlapping`."""
    return {
        pool.name: len(group) - rank
        for group in overlapping(desired)
        if len(group) <= MOST
        for rank, pool in enumerate(group)
    }


def overlapping(desired: Desired) -> list[list[Declared[GpuPool]]]:
    """Groups of at least two pools that overlap, directly or through another pool of the group; each in order."""
    groups: list[list[_Ranked]] = []
    for each in _ranked(desired):
        mine = _hard_taints(each[2])
        joined = [group for group in groups if any(_comparable(mine, _hard_taints(other[2])) for other in group)]
        groups = [group for group in groups if group not in joined]
        groups.append([one for group in joined for one in group] + [each])
    return [[pool for _, _, pool in sorted(group, key=_by_order)] for group in groups if len(group) > 1]


def untainted(desired: Desired) -> Iterator[Declared[GpuPool]]:
    """Scaled pools that have no weight because they have no taints, where another scaled pool exists."""
    scaled = {each.spec.pool_name for each in desired.provisioners}
    pools = [pool for pool in desired.pools if pool.name in scaled]
    for pool in pools if len(pools) > 1 else ():
        if pool.spec.weight is None and not _hard_taints(pool):
            yield pool


def _ranked(desired: Desired) -> list[_Ranked]:
    """Pools whose weight follows from their rank. A suspended NodeProvisioner keeps its rank."""
    pools = {pool.name: pool for pool in desired.pools}
    first: dict[str, _Ranked] = {}
    for each in sorted(desired.provisioners, key=lambda one: (one.spec.order, one.name)):
        pool = pools.get(each.spec.pool_name)
        if pool is not None and pool.spec.weight is None and _hard_taints(pool):
            first.setdefault(pool.name, (each.spec.order, each.name, pool))
    return list(first.values())


def _by_order(ranked: _Ranked) -> tuple[int, str]:
    return ranked[:2]


def _hard_taints(pool: Declared[GpuPool]) -> _Taints:
    taints = (each for each in pool.spec.taints if each.effect != "PreferNoSchedule")
    return frozenset((each.key, each.value, each.effect) for each in taints)


def _comparable(one: _Taints, other: _Taints) -> bool:
    return one <= other or other <= one
