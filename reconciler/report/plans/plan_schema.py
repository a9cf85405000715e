"""The JSON Schema of a plan's JSON, from the structs it is made of."""

from reconciler.report.plans.plan_shape import PlanTold
from reconciler.report.published.shape_schema import Keywords, shape_schema


def plan_schema() -> Keywords:
    """As it is published."""
    return shape_schema(PlanTold, "Plan", "reconciler/report/plans/plan_shape.py")
