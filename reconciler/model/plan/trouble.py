"""A planner that raised while a plan was made: a fault of ours, contained to a pool or to the planner."""

import msgspec


class PlannerFailure(msgspec.Struct, frozen=True, gc=False, order=True):
    """One exception."""

    planner: str
    pool: str  # the pool that was planned for; nothing where that is not known, and the planner stands still
    error: str  # type and text
    trace: tuple[str, ...] = ()  # places in our code, outermost first: plan/scaling/planner.py:42
