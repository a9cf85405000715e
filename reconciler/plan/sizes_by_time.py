"""NodeProvisioners as their schedules make them at one moment.

A schedule holds from each strike for its duration. The sizes of the provisioner itself hold always; a schedule that
holds raises `minSize` and `warmNodes`, never above `maxSize`, and of several the largest counts. So planners look at
one provisioner with fixed sizes, and reasons lead back to the line of the schedule that decides.
"""

from collections.abc import Iterator

import msgspec

from reconciler.model.desired import Declared
from reconciler.model.instant import Instant
from reconciler.model.plan.inputs import Inputs
from reconciler.model.policy.node_provisioner import NodeProvisioner
from reconciler.plan.windows import changes_at, is_open

_FIELDS = (("min_size", "minSize"), ("warm_nodes", "warmNodes"))


def provisioners_now(inputs: Inputs) -> tuple[Declared[NodeProvisioner], ...]:
    """All provisioners, in the order of the policies, with the sizes that hold now."""
    return tuple(at(each, inputs.now) for each in inputs.desired.provisioners)


def at(declared: Declared[NodeProvisioner], now: Instant) -> Declared[NodeProvisioner]:
    """One provisioner, with the sizes that hold at a moment."""
    spec, origins = declared.spec, dict(declared.origins)
    holding = holding_at(spec, now)
    if not holding:
        return declared
    sizes: dict[str, int] = {}
    for field, written in _FIELDS:
        size = getattr(spec, field)
        for number in holding:
            wanted = min(getattr(spec.schedules[number], field) or 0, spec.max_size)
            if wanted > size:
                size = wanted
                origins[f"spec.{written}"] = declared.origin(f"spec.schedules[{number}].{written}")
        sizes[field] = size
    return msgspec.structs.replace(
        declared, spec=msgspec.structs.replace(spec, **sizes), origins=tuple(origins.items())
    )


def holding_at(spec: NodeProvisioner, now: Instant) -> list[int]:
    """The numbers of the schedules that hold."""
    return [number for number, each in enumerate(spec.schedules) if is_open(each, now)]


def next_change(inputs: Inputs) -> Instant | None:
    """When a schedule of any provisioner begins or ends next."""
    return min(_changes(inputs), default=None)


def _changes(inputs: Inputs) -> Iterator[Instant]:
    for each in inputs.desired.provisioners:
        for schedule in each.spec.schedules if not each.spec.suspend else ():
            moment = changes_at(schedule, inputs.now)
            if moment is not None and moment > inputs.now:
                yield moment
