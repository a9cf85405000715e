"""A Scenario is written like a policy: the same head, the same rules of YAML, a schema of its own."""

from reconciler.policy.json_schema import schema_of
from reconciler.policy.kind import Kind
from reconciler.schema.generated import SCHEMAS, as_json
from reconciler.simulate.scenario.spec import Scenario

SCENARIO = Kind(spec=Scenario, plural="scenarios", short="scn", columns=(), is_policy=False)
SCHEMA = f"{SCHEMAS}/scenario.v1.json"


def scenario_files() -> dict[str, str]:
    """The files that follow from it: path from the root, and content."""
    schema = schema_of(SCENARIO)
    comment = "Written by `make generate` from reconciler/simulate/scenario; edit there."
    return {SCHEMA: as_json({**schema, "$comment": comment})}
