"""What a template is told about a pool: plain data in the words of the policy, defaults filled in."""

from collections.abc import Iterator
from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.desired import Declared, Desired
from reconciler.model.policy.gpu import GpuPool, InstanceType, Requirement
from reconciler.policy.shape import ListOf, MapOf, Measured, Object, Shape, describe


class OfProvisioner(msgspec.Struct, frozen=True):
    """Values that a pool without a value of its own takes from its NodeProvisioner; None where there is none."""

    most_nodes: int | None = None
    weight: int | None = None


UNSCALED = OfProvisioner()


def values_of(name: str, spec: GpuPool, covered: bool, scaled: OfProvisioner = UNSCALED) -> dict[str, Any]:
    """The values of one rendering; `covered` is whether a NodeProvisioner or DrainPolicy looks after the pool.

    Of a pool that is scaled Karpenter is to buy no more than `most_nodes` either, unless the pool has a limit of its
    own: one above that is what leaves room for the nodes which replace drifted ones.
    """
    pool = {"name": name, **_plain(describe(GpuPool), spec)}
    if scaled.most_nodes is not None and "nodes" not in spec.limits:
        pool["limits"] = dict(sorted({**pool["limits"], "nodes": str(scaled.most_nodes)}.items()))
    if spec.weight is None:
        pool["weight"] = scaled.weight
    return {"pool": pool, "requirements": _requirements(spec), "covered": covered}


def _requirements(spec: GpuPool) -> list[dict[str, Any]]:
    """All demands of the NodePool. `Exists` of a label that each node has demands nothing: it only leaves the label to
    the other requirements, or to Karpenter."""
    derived = (
        Requirement(key=names.INSTANCE_TYPE, operator="In", values=[each.name for each in spec.instance_types]),
        Requirement(key=names.CAPACITY_TYPE, operator="In", values=list(spec.capacity_types)),
    )
    left_open = {each.key for each in spec.requirements if each.operator == "Exists"}
    requirements = [each for each in derived if each.key not in left_open]
    requirements += [each for each in spec.requirements if not demands_nothing(each)]
    return [_plain(describe(Requirement), each) for each in requirements]


def demands_nothing(requirement: Requirement) -> bool:
    """Whether each node meets it."""
    is_open = requirement.operator == "Exists" and requirement.min_values is None
    return is_open and requirement.key in {names.INSTANCE_TYPE, names.CAPACITY_TYPE}


def values_of_pod(name: str, spec: GpuPool, instance: InstanceType) -> dict[str, Any]:
    """The values of one rendering of a smart pod, for machines of one type."""
    pool = {"name": name, **_plain(describe(GpuPool), spec)}
    return {"pool": pool, "instance": _plain(describe(InstanceType), instance)}


def _plain(shape: Shape, value: Any) -> Any:
    """Each field under the name that people write, absent ones as None, measures as people write them."""
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
# Theory of operation. Karpenter buys for a pod from the NodePool of the highest weight that fits. The planner asks
# pools by the `order` of their NodeProvisioners. So that both choose the same pool, each group of overlapping pools is
# ranked by order and name: the last pool has weight 1, and each pool before it has 1 more.
#
# Two pools overlap if each pod that tolerates the taints of one tolerates the taints of the other. Labels and
# requirements do not separate pools, since a pod that selects nothing fits both.
#
# A pool has no derived weight if its policy has a weight, if no NodeProvisioner names it, or if it has no taints: with
# a weight above 0 a pool without taints would come before the NodePools of pods that need no GPU.

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
