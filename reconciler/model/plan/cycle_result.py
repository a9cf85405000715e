"""What came of one cycle: what it went by, what was planned and done, and why more was not."""

import msgspec

from reconciler.model.instant import Instant
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.outcome import Outcome
from reconciler.model.plan.plan import Plan
from reconciler.model.problem import Problem


class CycleResult(msgspec.Struct, frozen=True):
    """Told to whoever publishes; a cycle that came to nothing says so."""

    at: Instant
    inputs: Inputs | None = None  # None: there was nothing to plan from
    plan: Plan | None = None
    outcomes: tuple[Outcome, ...] = ()  # of what was sent, in the order in which answers came
    trouble: str = ""  # a sentence: why nothing was done
    problems: tuple[Problem, ...] = ()  # of policies that were refused; those before them stay in force
    wake_at: Instant | None = None  # when to look again, though nothing changes
    unpublished: tuple[str, ...] = ()  # whoever could not tell of it, by a fault of ours
    spent_ms: tuple[tuple[str, int], ...] = ()  # what it did, in order, and how long each took
