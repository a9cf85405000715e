"""What a template is told about a pool: plain data in the words of the policy, defaults filled in."""

from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.policy.gpu_pool import GpuPool, InstanceType, Requirement
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
