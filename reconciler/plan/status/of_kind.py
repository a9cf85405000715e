"""How a policy stands, with what its kind alone is told: the size of a pool and what keeps it from its target, and
machines that could not be bought lately."""

from typing import get_args

import msgspec

from reconciler.model.plan.size_evaluation import LimitKind, SizeEvaluation
from reconciler.plan.capacity.shortages import short_of
from reconciler.plan.status.conditions import (
    FOLLOWED,
    ObjectCondition,
    PolicyCondition,
    PolicyStatusContext,
    Scenery,
    condition_of,
)
from reconciler.plan.status.messages import MachinesRefused, NothingRefused, NotLimited


def standing_in(scenery: Scenery, kind: str, name: str) -> ObjectCondition:
    object_condition = condition_of(PolicyStatusContext(scenery, kind, name))
    if kind == "GpuPool" and scenery.plan is not None and (kind, name) in scenery.declared:
        short = tuple(short_of(scenery.plan.memory.shortages, name, scenery.inputs.now))
        condition = PolicyCondition("CapacityShort", bool(short), MachinesRefused(short) if short else NothingRefused())
        return msgspec.structs.replace(object_condition, further=(condition,))
    evaluated = scenery.sizes.get(name) if kind == "NodeProvisioner" else None
    return _sized(object_condition, evaluated) if evaluated is not None else object_condition


def _sized(condition: ObjectCondition, evaluated: SizeEvaluation) -> ObjectCondition:
    """One that has nothing else to say says why the pool has its size."""
    if condition == FOLLOWED:
        condition = msgspec.structs.replace(condition, why=evaluated.reason)
    further = tuple(_limit(evaluated, kind) for kind in get_args(LimitKind))
    return msgspec.structs.replace(condition, further=further, size=evaluated)


def _limit(evaluated: SizeEvaluation, kind: LimitKind) -> PolicyCondition:
    reason = next((each.reason for each in evaluated.limits if each.kind == kind), None)
    return PolicyCondition(kind, reason is not None, reason or NotLimited(kind))
