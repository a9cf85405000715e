"""What a decision follows from: policies, or that no policy yields an object any more."""

from collections.abc import Iterator

import msgspec

from reconciler.model.desired import Desired
from reconciler.model.plan.decision import Decision, Delete
from reconciler.plan.drain.reasons import PLANNER as DRAIN
from reconciler.plan.manifests.reasons import PLANNER as MANIFESTS
from reconciler.plan.scaling.reasons import PLANNER as SCALING

PolicyKey = tuple[str, str]  # kind and name


class Cause(msgspec.Struct, frozen=True):
    """What an approval must name to cover a decision: the policies that it follows from, or the object that is lost."""

    policies: frozenset[PolicyKey] = frozenset()
    lost: str = ""  # title of an object that no policy declares any more


def cause_of(desired: Desired, decision: Decision) -> Cause:
    """Only what no policy yields any more is deleted by the planner of manifests. A pool that is not declared causes
    nothing that can be approved."""
    if decision.planner == MANIFESTS and isinstance(decision.act, Delete):
        return Cause(lost=decision.subject.title)
    if decision.pool and desired.pool(decision.pool) is None:
        return Cause()
    return Cause(frozenset(policies_behind(desired, decision)))


def policies_behind(desired: Desired, decision: Decision) -> Iterator[PolicyKey]:
    """A NodeProvisioner scales, a DrainPolicy drains, and everything else of a pool follows from its GpuPool, which may
    not be declared any more."""
    pool = decision.pool
    if decision.planner == SCALING:
        yield from (("NodeProvisioner", each.name) for each in desired.provisioners if each.spec.pool_name == pool)
    elif decision.planner == DRAIN:
        yield from (("DrainPolicy", each.name) for each in desired.drains if {"*", pool} & set(each.spec.pool_names))
    elif pool:
        yield "GpuPool", pool
