"""Why a status is written."""

import msgspec

from reconciler.model.plan.action import Ref
from reconciler.model.plan.reason import CodeFacts

PLANNER = "statuses"


class ProblemCount(msgspec.Struct, frozen=True, gc=False):
    """Of all policies together."""

    problems: int


class StatusTold(CodeFacts, frozen=True):
    template = "{object} is told how it stands: {standing}."

    object: Ref
    standing: str | ProblemCount  # the message that its status gets


REASONS: tuple[type[CodeFacts], ...] = (StatusTold,)
