"""What a plan does to the fleet: nodes that Karpenter, scaling and drains take away, nodes that are bought, and money.

A plan says what Karpenter does to the nodes of NodePools that it edits or deletes. What our own planners do to nodes,
now and later, is added here as consequences of the same form. Then all are priced together.
"""

from reconciler.plan.files.planning_result import PlanningResult
from reconciler.plan.impact.departures import with_departures
from reconciler.plan.impact.mode_changes import sides
from reconciler.plan.impact.pricing import Priced, priced
from reconciler.plan.impact.purchases import with_purchases


def with_impact(scene: PlanningResult, base: PlanningResult | None = None) -> Priced:
    """Both plans with all their consequences, and the bills of their pools."""
    own, before = with_purchases(*with_departures(*sides(scene, base)))
    return priced(own.scene, before.scene if before is not None else None)
