"""The files that follow from the shape of reports: their paths from the root of the repository, and what they say."""

from reconciler.report.plans.plan_schema import plan_schema
from reconciler.report.schema.reasons_page import reasons_page
from reconciler.report.schema.shape_schema import shape_schema
from reconciler.report.schema.smart_pods import smart_pods_page
from reconciler.report.simulation.simulated_shape import SimulatedTold
from reconciler.schema.generated import SCHEMAS, as_json

PLAN = f"{SCHEMAS}/plan.json"
SIMULATED = f"{SCHEMAS}/simulated.json"
REASONS_PAGE = "docs/reference/reasons.md"
SMART_PODS_PAGE = "docs/reference/smart-pods.md"


def published_files() -> dict[str, str]:
    """Path to content."""
    simulated = shape_schema(SimulatedTold, "Simulated", "reconciler/report/simulation/simulated_shape.py")
    schemas = {PLAN: as_json(plan_schema()), SIMULATED: as_json(simulated)}
    return schemas | {REASONS_PAGE: reasons_page(), SMART_PODS_PAGE: smart_pods_page()}
