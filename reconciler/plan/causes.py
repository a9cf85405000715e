"""Policies that a decision follows from, or the lost object that a deletion is about."""

from collections.abc import Iterator

import msgspec

from reconciler.model.desired import Desired
from reconciler.model.plan.decision import Decision, Delete
from reconciler.plan.drain.reasons import PLANNER as DRAIN
from reconciler.plan.manifests.reasons import PLANNER as MANIFESTS
from reconciler.plan.scaling.reasons import PLANNER as SCALING

PolicyKey = tuple[str, str]  # kind and name


class Cause(msgspec.Struct, frozen=True):
    """Policies that an approval must name to cover a decision, or the title of the object that is deleted."""

    policies: frozenset[PolicyKey] = frozenset()
    lost: str = ""  # title of an object that no policy declares any more


def cause_of(desired: Desired, decision: Decision) -> Cause:
    """Cause of a decision. Deletions by the manifests planner are caused by the loss of the object: that planner
    deletes only objects that no policy declares any more. A decision about an undeclared pool has an empty cause, so
    no approval can cover the decision.
    """
    if decision.planner == MANIFESTS and isinstance(decision.act, Delete):
        return Cause(lost=decision.subject.title)
    if decision.pool and desired.pool(decision.pool) is None:
        return Cause()
    return Cause(frozenset(policies_behind(desired, decision)))


def policies_behind(desired: Desired, decision: Decision) -> Iterator[PolicyKey]:
    """Policies behind a decision: NodeProvisioners for scaling, DrainPolicies for drains, else the GpuPool of the
    decision. The GpuPool may not be declared any more.
    """
    pool = decision.pool
    if decision.planner == SCALING:
        yield from (("NodeProvisioner", each.name) for each in desired.provisioners if each.spec.pool_name == pool)
    elif decision.planner == DRAIN:
        yield from (("DrainPolicy", each.name) for each in desired.drains if {"*", pool} & set(each.spec.pool_names))
    elif pool:
        yield "GpuPool", pool
