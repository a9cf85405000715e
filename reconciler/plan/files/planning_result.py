"""A plan and all that it followed from: what reports and explanations are made of."""

from collections.abc import Mapping
from functools import cached_property

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.plan import Plan
from reconciler.plan.holds.standstill import Standstill, Standstills


class PlanningResult(msgspec.Struct, frozen=True, dict=True):
    """What went in, and what came of it."""

    inputs: Inputs
    fleet: Fleet
    plan: Plan

    @cached_property
    def standstills(self) -> Mapping[str, Standstill]:
        """By node: taints of ours with which no planner goes on."""
        return Standstills(self.inputs, self.fleet).all
