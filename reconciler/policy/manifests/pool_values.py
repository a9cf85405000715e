"""Values that a template receives for a pool: plain data under the policy's field names, with defaults filled in."""

from collections.abc import Iterator
from typing import Any

from reconciler.model import names
from reconciler.model.desired import Declared, Desired
from reconciler.model.policy.gpu import GpuPool, InstanceType, Requirement
from reconciler.policy.shape import ListOf, MapOf, Measured, Object, Shape, describe


def values_of(
    name: str, spec: GpuPool, covered: bool, most_nodes: int | None = None, weight: int | None = None
) -> dict[str, Any]:
    """The values of one rendering. `covered`: a NodeProvisioner or DrainPolicy removes nodes of the pool.

    `most_nodes` and `weight` follow from the NodeProvisioner, and count unless the pool sets its own.

    For a scaled pool, `most_nodes` becomes Karpenter's limit unless the pool sets its own limit. A pool limit above
    `most_nodes` leaves room for the replacements of drifted nodes.
    """
    pool = {"name": name, **_plain(describe(GpuPool), spec)}
    if most_nodes is not None and "nodes" not in spec.limits:
        pool["limits"] = dict(sorted({**pool["limits"], "nodes": str(most_nodes)}.items()))
    if spec.weight is None:
        pool["weight"] = weight
    return {"pool": pool, "requirements": _requirements(spec), "covered": covered}


def _requirements(spec: GpuPool) -> list[dict[str, Any]]:
    """All requirements of the NodePool.

    `Exists` of a label that every node has requires nothing: it leaves the label to the other requirements, or to
    Karpenter.
    """
    derived = (
        Requirement(key=names.INSTANCE_TYPE, operator="In", values=[each.name for each in spec.instance_types]),
        Requirement(key=names.CAPACITY_TYPE, operator="In", values=list(spec.capacity_types)),
    )
    left_open = {each.key for each in spec.requirements if each.operator == "Exists"}
    requirements = [each for each in derived if each.key not in left_open]
    requirements += [each for each in spec.requirements if not demands_nothing(each)]
    return [_plain(describe(Requirement), each) for each in requirements]


def demands_nothing(requirement: Requirement) -> bool:
    """Whether every node meets the requirement."""
    is_open = requirement.operator == "Exists" and requirement.min_values is None
    return is_open and requirement.key in {names.INSTANCE_TYPE, names.CAPACITY_TYPE}


def values_of_pod(name: str, spec: GpuPool, instance: InstanceType) -> dict[str, Any]:
    """The values of one rendering of a smart pod, for one instance type."""
    pool = {"name": name, **_plain(describe(GpuPool), spec)}
    return {"pool": pool, "instance": _plain(describe(InstanceType), instance)}


def _plain(shape: Shape, value: Any) -> Any:
    """Each field under its policy name, absent fields as None, quantities and durations in their written form."""
    if value is None:
        return None
    match shape:
        case Object(fields=fields):
            return {field.name: _plain(field.shape, getattr(value, field.attribute)) for field in fields}
        case ListOf(item=item):
            return [_plain(item, each) for each in value]
        case MapOf(value=inner):
            return {key: _plain(inner, each) for key, each in sorted(value.items())}
        case Measured():
            return str(value)
        case _:
            return value


# --- Weights of NodePools: Karpenter tries overlapping NodePools in the order of their NodeProvisioners.
#
# Theory of operation. Karpenter launches nodes for a pod from the matching NodePool with the highest weight. The
# planner tries pools in the `order` of their NodeProvisioners. So that both choose the same pool, each group of
# overlapping pools is ranked by order and name: the last pool has weight 1, and each pool before it has 1 more.
#
# Two pools overlap if each pod that tolerates the taints of one tolerates the taints of the other. Labels and
# requirements do not separate pools, since a pod without selectors fits both.
#
# A pool has no derived weight if its policy sets a weight, if no NodeProvisioner names it, or if it has no taints: with
# a weight above 0, a pool without taints would come before the NodePools of pods that need no GPU.

MOST = 100  # Karpenter's maximum weight

_Ranked = tuple[int, str, Declared[GpuPool]]  # order and name of the NodeProvisioner, and its pool
_Taints = frozenset[tuple[str, str, str]]


def weights_of(desired: Desired) -> dict[str, int]:
    """The derived weights, by pool. Pools of a group larger than the number of weights have none; see `overlapping`."""
    return {
        pool.name: len(group) - rank
        for group in overlapping(desired)
        if len(group) <= MOST
        for rank, pool in enumerate(group)
    }


def overlapping(desired: Desired) -> list[list[Declared[GpuPool]]]:
    """Groups of at least two pools that overlap directly or through another pool of the group; each in order."""
    groups: list[list[_Ranked]] = []
    for each in _ranked(desired):
        mine = _hard_taints(each[2])
        joined = [group for group in groups if any(_comparable(mine, _hard_taints(other[2])) for other in group)]
        groups = [group for group in groups if group not in joined]
        groups.append([one for group in joined for one in group] + [each])
    return [[pool for _, _, pool in sorted(group, key=lambda ranked: ranked[:2])] for group in groups if len(group) > 1]


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


def _hard_taints(pool: Declared[GpuPool]) -> _Taints:
    taints = (each for each in pool.spec.taints if each.effect != "PreferNoSchedule")
    return frozenset((each.key, each.value, each.effect) for each in taints)


def _comparable(one: _Taints, other: _Taints) -> bool:
    return one <= other or other <= one
