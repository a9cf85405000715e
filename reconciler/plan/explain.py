"""Reasons to sentences: every code that any planner may give, in one table."""

from reconciler.model.planned.reason import Reason
from reconciler.plan import containment, removal
from reconciler.plan.drain import reasons as drain
from reconciler.plan.guards import cluster_min, frozen, one_action, set_aside
from reconciler.plan.guards import reasons as guards
from reconciler.plan.holds import standstill
from reconciler.plan.manifests import reasons as manifests
from reconciler.plan.reasons import by_code
from reconciler.plan.release import reasons as release
from reconciler.plan.scaling import reasons as scaling
from reconciler.plan.smart_pods import reasons as smart_pods
from reconciler.plan.statuses import reasons as statuses

REASONS = by_code(
    (
        *guards.REASONS,
        *frozen.REASONS,
        *one_action.REASONS,
        *standstill.REASONS,
        *removal.REASONS,
        *containment.REASONS,
        *set_aside.REASONS,
        *cluster_min.REASONS,
        *manifests.REASONS,
        *scaling.REASONS,
        *drain.REASONS,
        *smart_pods.REASONS,
        *release.REASONS,
        *statuses.REASONS,
    )
)


def sentence(reason: Reason) -> str:
    """What a person is told."""
    return REASONS[reason.code].tell(reason)


def asked(reason: Reason) -> str:
    """What a person is told of a decision that a guard holds."""
    return REASONS[reason.code].ask(reason)
