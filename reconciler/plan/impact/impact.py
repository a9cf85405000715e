"""What a plan does to the fleet: nodes that Karpenter, scaling and drains take away, nodes that are bought, and money.

A plan says what Karpenter does to the nodes of NodePools that it edits or deletes. What our own planners do to nodes,
now and later, is added here as consequences of the same form. Then all are priced together.
"""

from reconciler.plan.impact.acting import sides
from reconciler.plan.impact.departures import with_departures
from reconciler.plan.impact.pricing import Priced, priced
from reconciler.plan.impact.purchases import with_purchases
from reconciler.plan.kept.scene import Scene


def with_impact(scene: Scene, base: Scene | None = None) -> Priced:
    """Both plans with all their consequences, and the bills of their pools."""
    own, before = with_purchases(*with_departures(*sides(scene, base)))
    return priced(own.scene, before.scene if before is not None else None)
