"""The files that follow from the shape of reports: their paths from the root of the repository, and what they say."""

from reconciler.policy.published.generated import SCHEMAS, as_json
from reconciler.report.plans.plan_schema import plan_schema

PLAN = f"{SCHEMAS}/plan.json"


def published_files() -> dict[str, str]:
    """Path to content."""
    return {PLAN: as_json(plan_schema())}
