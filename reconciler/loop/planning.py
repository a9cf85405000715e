"""From inputs to a plan that breaks no invariant."""

from reconciler.fleet.fleet import Fleet
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.plan import Plan
from reconciler.plan.check import check
from reconciler.plan.files.planning_result import PlanningResult
from reconciler.plan.planner import plan


def decide(inputs: Inputs, fleet: Fleet | None = None) -> PlanningResult:
    """Plans and checks; raises BrokenInvariant rather than hand on a plan that could do harm. `fleet`, where there is
    one already, is of the same Observed."""
    if fleet is None:
        fleet = Fleet(inputs.observed)
    planned = plan(inputs, fleet)
    check(inputs, fleet, planned)
    return PlanningResult(inputs, fleet, planned)


class InProcess:
    """A Brain without a process of its own; owner of the fleet that it plans with, and of the last scene."""

    def __init__(self) -> None:
        self._fleet: Fleet | None = None
        self.scene: PlanningResult | None = None

    def plan(self, inputs: Inputs) -> Plan:
        """As `decide`, with a fleet that moves on from one plan to the next."""
        if self._fleet is None:
            self._fleet = Fleet(inputs.observed)
        elif self._fleet.observed is not inputs.observed:
            self._fleet.advance(inputs.observed)
        self.scene = decide(inputs, self._fleet)
        return self.scene.plan
