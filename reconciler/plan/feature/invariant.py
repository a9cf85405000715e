"""Invariants of plans: conditions that every plan must satisfy, whatever the planners decide."""

from collections.abc import Callable, Iterator

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model.plan.decision import Action, Decision
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.plan import Plan


class Acted(msgspec.Struct, frozen=True):
    """A decision to act, and its action."""

    decision: Decision
    act: Action

    @property
    def title(self) -> str:
        return f"{self.decision.planner} on {self.decision.subject.title}"


class InvariantInput(msgspec.Struct, frozen=True):
    """Input of an invariant: all actions of a plan, and the plan's inputs."""

    inputs: Inputs
    fleet: Fleet
    acted: tuple[Acted, ...]
    plan: Plan


class Invariant(msgspec.Struct, frozen=True):
    """An invariant, and the function that finds violations."""

    sentence: str
    broken_by: Callable[[InvariantInput], Iterator[str]]
