"""Reasons to sentences: every code that any planner may give, in one table."""

from reconciler.model.planned.reason import Reason
from reconciler.plan import guards, removal
from reconciler.plan.manifests import reasons as manifests
from reconciler.plan.reasons import by_code

REASONS = by_code((*guards.REASONS, *removal.REASONS, *manifests.REASONS))


def sentence(reason: Reason) -> str:
    """What a person is told."""
    return REASONS[reason.code].tell(reason)
