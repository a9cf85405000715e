"""Generated files about reports: paths from the root of the repository, and content."""

from collections.abc import Iterator
from enum import Enum
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Facts, Obstacle, Reason, Ref
from reconciler.plan.capacity.requests import RULES
from reconciler.plan.reason_catalog import REASONS
from reconciler.plan.reasons import Declared
from reconciler.plan.smart_pods.advance import TABLE, PhaseEvent, SmartPodPhase
from reconciler.report.json_schema import shape_schema
from reconciler.report.plans.plan_shape import plan_schema
from reconciler.report.simulation.simulated_json import SimulatedTold
from reconciler.schema.generated import SCHEMAS, as_json

PLAN = f"{SCHEMAS}/plan.json"
SIMULATED = f"{SCHEMAS}/simulated.json"
REASONS_PAGE = "docs/reference/reasons.md"
SMART_PODS_PAGE = "docs/reference/smart-pods.md"


def published_files() -> dict[str, str]:
    """Path to content."""
    simulated = shape_schema(SimulatedTold, "Simulated", "reconciler/report/simulation/simulated_json.py")
    schemas = {PLAN: as_json(plan_schema()), SIMULATED: as_json(simulated)}
    return schemas | {REASONS_PAGE: reasons_page(), SMART_PODS_PAGE: smart_pods_page()}


# --- Reference of reasons: each code with its hold class, its facts and their types, and its sentence.

_OPENING = """\
# Reasons

Each decision of a plan has one of these codes as its reason. `plan -o json` prints the code with its
facts, `explain` prints the sentence. This page is written by `make generate`.

The second column is the class of a hold with this reason. `blocked`: a person must act before the decision continues,
and the command ends with [exit code 4](exit-codes.md). `waiting`: the decision waits for a timer, a window, demand or a
read, and continues by itself. `waiting, held`: the decision waits until a person acts, for example by ending a freeze.
Reports list blocked and held decisions under "Held", and the others under "Waiting".

Braces in a sentence contain a fact, or text made from several facts. The facts of a code and their types are in the
third column, as `plan -o json` has them:

- text, number, true or false: as in JSON. Where several texts are listed, the fact is one of them.
- time: RFC 3339, `2026-11-18T14:52:00Z`.
- object: `kind`, `namespace`, `name` and `uid`, each a text.
- reason: `reason`, its code; `facts`, its facts; and `sentence`. The cause, or the reason of the held decision.
- list: an array of the named type.
- Parentheses after a fact contain the fields of a JSON object.

A fact with a question mark is optional.
"""
_SIMPLE: dict[Any, str] = {
    str: "text",
    Obstacle: "text",
    int: "number",
    bool: "true or false",
    Instant: "time",
    Ref: "object",
    Reason: "reason",
    Facts: "facts of a code",
}


def reasons_page() -> str:
    """The page of all reasons by code; texts in braces differ from case to case."""
    rows = [
        f"| `{code}` | {_class(each)} | {_cell(facts_of(each))} | {_cell(_sentence(each))} |"
        for code, each in sorted(REASONS.items())
    ]
    return "\n".join((_OPENING, "| code | hold | facts | sentence |", "|---|---|---|---|", *rows)) + "\n"


def facts_of(declared: Declared) -> str:
    """Names and types of the facts, in declaration order."""
    return ", ".join(_fields(declared))


def _fields(of: Any) -> list[str]:
    hints = get_type_hints(of)
    return [_field(each.name, hints[each.name]) for each in msgspec.structs.fields(of)]


def _field(name: str, hint: Any) -> str:
    kinds = [each for each in get_args(hint) if each is not type(None)] if _is_union(hint) else [hint]
    optional = "?" if _is_union(hint) and type(None) in get_args(hint) else ""
    return f"{name}{optional}: {' or '.join(map(form_of, kinds))}"


def form_of(hint: Any) -> str:
    """The type of a fact, in words."""
    if hint in _SIMPLE:
        return _SIMPLE[hint]
    if get_origin(hint) is tuple:
        kinds = [each for each in get_args(hint) if each is not Ellipsis]
        return f"list of {', '.join(map(form_of, kinds))}"
    if get_origin(hint) is Literal:
        return " or ".join(f"`{each}`" for each in get_args(hint))
    if _is_union(hint):
        return " or ".join(form_of(each) for each in get_args(hint) if each is not type(None))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return " or ".join(f"`{each.value}`" for each in hint)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return f"({', '.join(_fields(hint))})"
    return str(hint)


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in {Union, UnionType}


def _sentence(declared: Declared) -> str:
    """The sentence without format specifications: {until:time} is {until}."""
    pieces = declared.template.split("{")
    rest = (piece.partition("}") for piece in pieces[1:])
    return pieces[0] + "".join(f"{{{name.partition(':')[0]}}}{after}" for name, _, after in rest)


def _class(declared: Declared) -> str:
    return f"{declared.hold}, held" if declared.by_person else declared.hold


def _cell(text: str) -> str:
    """Text escaped for a table cell of Markdown."""
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")


# --- Reference of smart pods: phases, transitions, and phases of the NodeClaim.

_SMART_PODS_OPENING = """\
# Phases of smart pods

This page lists the phases of a smart pod and their transitions. `Pending`, `Scheduled` and `Failed` are stored in its
annotation `gpu.scheduling/phase`; `NodeReady` and `Completed` last until the smart pod is deleted; its
NodeClaim and node stay. Events that the table does not list are refused and change nothing. This page is written by
`make generate`.
"""
_MACHINE = """\
The phase of the machine that Karpenter launches for the smart pod follows from the NodeClaim; the first match counts. A
NodeClaim has no failed phase: a failed NodeClaim is deleted.
"""


def smart_pods_page() -> str:
    """The page: a diagram, a table of transitions, and a table of machine phases."""
    return "\n".join((_SMART_PODS_OPENING, *_diagram(), "", *_table(), "", _MACHINE, *_machine())) + "\n"


def _diagram() -> Iterator[str]:
    yield from ("```mermaid", "stateDiagram-v2", f"    [*] --> {SmartPodPhase.PENDING.value}")
    for (phase, event), after in TABLE.items():
        yield f"    {phase.value} --> {after.value}: {event.value}"
    yield from (f"    {SmartPodPhase.COMPLETED.value} --> [*]", "```")


def _table() -> Iterator[str]:
    yield f"| event | {' | '.join(each.value for each in SmartPodPhase)} |"
    yield "|---" * (1 + len(SmartPodPhase)) + "|"
    for event in PhaseEvent:
        after = (TABLE.get((phase, event)) for phase in SmartPodPhase)
        yield f"| {event.value} | {' | '.join(each.value if each else 'refused' for each in after)} |"


def _machine() -> Iterator[str]:
    yield from ("| machine | its NodeClaim |", "|---|---|")
    yield from (f"| {rule.phase} | {rule.text} |" for rule in RULES)
