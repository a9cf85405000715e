"""The files that follow from the shape of reports: their paths from the root of the repository, and what they say."""

from reconciler.plan.explain import REASONS
from reconciler.plan.reasons import Declared
from reconciler.policy.published.generated import SCHEMAS, as_json
from reconciler.report.plans.plan_schema import plan_schema
from reconciler.report.published.shape_schema import shape_schema
from reconciler.report.published.smart_pods import smart_pods_page
from reconciler.report.simulated.simulated_shape import SimulatedTold

PLAN = f"{SCHEMAS}/plan.json"
SIMULATED = f"{SCHEMAS}/simulated.json"
REASONS_PAGE = "docs/reference/reasons.md"
SMART_PODS_PAGE = "docs/reference/smart-pods.md"
_OPENING = """\
# Reasons

Why something is done, or is not: each decision of a plan bears one of these codes. `plan -o json` has it with its
facts, `explain` tells the sentence. What stands in braces is a fact. This page is written by `make generate`.

The second column is the class of a hold with this reason. `blocked`: a person must act before it goes on, and the
command ends with [exit code 4](exit-codes.md). `waiting`: it waits for a timer, a window, demand or a read, and goes on
by itself. `waiting, held`: it waits until a person takes back what they asked for, such as a freeze, or does something.
Reports list what is blocked or held under "Held", and what goes on by itself under "Waiting".
"""


def published_files() -> dict[str, str]:
    """Path to content."""
    simulated = shape_schema(SimulatedTold, "Simulated", "reconciler/report/simulated/simulated_shape.py")
    schemas = {PLAN: as_json(plan_schema()), SIMULATED: as_json(simulated)}
    return schemas | {REASONS_PAGE: reasons_page(), SMART_PODS_PAGE: smart_pods_page()}


def reasons_page() -> str:
    """Every reason by its code; what stands in braces differs from case to case."""
    rows = [f"| `{code}` | {_class(each)} | {_cell(each.template)} |" for code, each in sorted(REASONS.items())]
    return "\n".join((_OPENING, "| code | hold | sentence |", "|---|---|---|", *rows)) + "\n"


def _class(because: Declared) -> str:
    return f"{because.hold}, held" if because.by_person else because.hold


def _cell(sentence: str) -> str:
    """A vertical bar would end it, and Markdown must not read anything into the rest."""
    return sentence.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")
