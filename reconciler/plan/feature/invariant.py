"""An invariant of plans: what must hold of each, whatever planners decide."""

from collections.abc import Callable, Iterator

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model.plan.decision import Action, Decision
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.plan import Plan


class Acted(msgspec.Struct, frozen=True):
    """A decision to act, and the action."""

    decision: Decision
    act: Action

    @property
    def title(self) -> str:
        return f"{self.decision.planner} on {self.decision.subject.title}"


class InvariantInput(msgspec.Struct, frozen=True):
    """What is judged: all actions of a plan, and what they follow from."""

    inputs: Inputs
    fleet: Fleet
    acted: tuple[Acted, ...]
    plan: Plan


class Invariant(msgspec.Struct, frozen=True):
    """What must hold, and what breaks it."""

    sentence: str
    broken_by: Callable[[InvariantInput], Iterator[str]]
