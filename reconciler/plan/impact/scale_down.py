"""The nodes that a plan lets scaling take away, marked before or by it, and when each goes.

What a guard holds is among them: it goes once that is approved. What a plan takes the mark off is not.
"""

import msgspec

from reconciler.model import names
from reconciler.model.instant import Instant, later, unix_seconds
from reconciler.model.plan.action import Delete, Hold, Taint
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.plan import Plan
from reconciler.model.policy.node_provisioner import LEAST_DELAY_MS
from reconciler.plan.guards.reasons import HeldByGuard
from reconciler.plan.scaling.reasons import PLANNER


class Departing(msgspec.Struct, frozen=True, gc=False):
    """One node."""

    node: str
    pool: str
    at: Instant | None  # None: not before it is marked, which is held
    since: Instant | None = None  # when it was marked, as its delay tells
    is_marked: bool = False  # before this plan


def departing(inputs: Inputs, plan: Plan) -> dict[str, Departing]:
    """By node."""
    delays = {each.name: each.spec.scale_down_delay.milliseconds for each in inputs.desired.provisioners}
    departings = {}
    for evaluated in plan.sizes:
        delay_ms = max(LEAST_DELAY_MS, delays.get(evaluated.provisioner, 0))
        for each in evaluated.marked:
            since = later(each.at, -delay_ms) if each.at - delay_ms <= inputs.now else None
            departings[each.node] = Departing(each.node, evaluated.pool, each.at, since, is_marked=True)
    for decision in plan.decisions:
        if decision.planner == PLANNER and decision.subject.kind == "Node":
            _follow(departings, decision)
    return dict(sorted(departings.items()))


def _follow(departings: dict[str, Departing], decision: Decision) -> None:
    name = decision.subject.name
    match decision.act:
        case Taint(key=names.DELETION_TIME, value=None):
            departings.pop(name, None)
        case Taint(key=names.DELETION_TIME, value=str() as value):
            before = departings.get(name)
            since = before.since if before else None
            departings[name] = Departing(name, decision.pool, unix_seconds(value), since, is_marked=before is not None)
        case Delete():
            departings.setdefault(name, Departing(name, decision.pool, None))
        case Hold() if isinstance(decision.reason.facts, HeldByGuard):
            departings.setdefault(name, Departing(name, decision.pool, None))
