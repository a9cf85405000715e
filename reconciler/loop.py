"""One cycle: from inputs to a plan that breaks no invariant. What sees the world and what acts on it is plugged in."""

from reconciler.fleet.fleet import Fleet
from reconciler.model.planned.inputs import Inputs
from reconciler.plan.check import check
from reconciler.plan.planner import plan
from reconciler.plan.scene import Scene


def decide(inputs: Inputs) -> Scene:
    """Plans and checks; raises BrokenInvariant rather than hand on a plan that could do harm."""
    fleet = Fleet(inputs.observed)
    planned = plan(inputs, fleet)
    check(inputs, fleet, planned)
    return Scene(inputs, fleet, planned)
