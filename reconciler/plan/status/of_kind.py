"""How a policy stands, with what its kind alone is told: the size of a pool and what keeps it from its target, and
machines that could not be bought lately."""

from typing import get_args

import msgspec

from reconciler.model.plan.size_evaluation import LimitKind, SizeEvaluation
from reconciler.plan.capacity.shortages import short_of
from reconciler.plan.status.conditions import FOLLOWED, About, Condition, ObjectCondition, Scenery, standing_of
from reconciler.plan.status.messages import MachinesRefused, NothingRefused, NotLimited


def standing_in(scenery: Scenery, kind: str, name: str) -> ObjectCondition:
    standing = standing_of(About(scenery, kind, name))
    if kind == "GpuPool" and scenery.plan is not None and (kind, name) in scenery.declared:
        short = tuple(short_of(scenery.plan.memory.shortages, name, scenery.inputs.now))
        condition = Condition("CapacityShort", bool(short), MachinesRefused(short) if short else NothingRefused())
        return msgspec.structs.replace(standing, further=(condition,))
    evaluated = scenery.sizes.get(name) if kind == "NodeProvisioner" else None
    return _sized(standing, evaluated) if evaluated is not None else standing


def _sized(standing: ObjectCondition, evaluated: SizeEvaluation) -> ObjectCondition:
    """One that has nothing else to say says why the pool has its size."""
    if standing == FOLLOWED:
        standing = msgspec.structs.replace(standing, why=evaluated.reason)
    further = tuple(_limit(evaluated, kind) for kind in get_args(LimitKind))
    return msgspec.structs.replace(standing, further=further, size=evaluated)


def _limit(evaluated: SizeEvaluation, kind: LimitKind) -> Condition:
    found = next((each.reason for each in evaluated.limits if each.kind == kind), None)
    return Condition(kind, found is not None, found or NotLimited(kind))
