"""Parses a scenario into a Scenario, or into all Problems with their positions."""

from typing import Any

import msgspec

from reconciler.model.bundle import Text
from reconciler.model.problem import Problem
from reconciler.model.quantity import Duration, Money, Percent, Quantity
from reconciler.policy.document import PolicyDocument, read_head
from reconciler.policy.json_schema import schema_of
from reconciler.policy.read import read_spec
from reconciler.policy.shape import API_VERSION, Kind, ListOf, MapOf, Object, Shape, describe
from reconciler.policy.tree import Mark, places, problem, written
from reconciler.policy.yaml import read
from reconciler.schema.generated import SCHEMAS, as_json, as_yaml
from reconciler.simulate.scenario.rules import ScenarioProblem, mark_at, rule_problems
from reconciler.simulate.scenario.spec import Scenario


class Read(msgspec.Struct, frozen=True):
    """A scenario with its name, if it is valid; and its problems."""

    name: str = ""
    scenario: Scenario | None = None
    problems: tuple[Problem, ...] = ()


def read_scenario(text: Text) -> Read:
    """One document in one file."""
    found = _read(text)
    lines = _lines(text)
    problems = sorted({_with_its_line(each, lines) for each in found.problems})
    return msgspec.structs.replace(found, problems=tuple(problems))


def _read(text: Text) -> Read:
    nodes, problems = read(text.path, text.content)
    if problems:
        return Read(problems=tuple(problems))
    if len(nodes) != 1:
        sentence = f"a scenario is one document, got {len(nodes)}"
        return Read(problems=(Problem(text.path, 0, 0, "RC101", sentence, "write one scenario per file"),))
    document, problems = read_head(nodes[0], (SCENARIO,))
    if document is None:
        return Read(problems=tuple(problems))
    scenario, errors = read_spec(SCENARIO.shape, document.spec, document.named_at)
    problems += errors
    if scenario is None:
        return Read(document.name, None, tuple(problems))
    problems += rule_problems(scenario, _marks(document))
    return Read(document.name, None if problems else scenario, tuple(problems))


def place_of(text: Text, texts: ScenarioProblem) -> Problem:
    """A problem of a parsed scenario, found while its inputs were read."""
    nodes, _ = read(text.path, text.content)
    document, _ = read_head(nodes[0], (SCENARIO,))
    if document is None:
        raise TypeError("the scenario was parsed before")
    path, *rest = texts
    return _with_its_line(problem(mark_at(_marks(document), path), *rest), _lines(text))


def _marks(document: PolicyDocument) -> dict[str, Mark]:
    marks = {"": document.named_at}
    if document.spec is not None:
        marks |= {written(path): mark for path, mark in places(document.spec, ("spec",))}
    return marks


def _lines(text: Text) -> list[str]:
    return text.content.decode(errors="replace").splitlines()


def _with_its_line(problem: Problem, lines: list[str]) -> Problem:
    if not 0 < problem.line <= len(lines):
        return problem
    return msgspec.structs.replace(problem, excerpt=lines[problem.line - 1])


# --- Writes a Scenario as YAML: only values that differ from the defaults.


def scenario_text(name: str, scenario: Scenario) -> str:
    """The text parses to the same scenario."""
    spec = _plain(describe(Scenario), scenario)
    return as_yaml({"apiVersion": API_VERSION, "kind": "Scenario", "metadata": {"name": name}, "spec": spec})


def _plain(shape: Shape, value: Any) -> Any:
    match shape:
        case Object(fields=fields):
            held = [(field, getattr(value, field.attribute)) for field in fields]
            return {
                field.name: _plain(field.shape, own) for field, own in held if field.required or own != field.default
            }
        case ListOf(item=item):
            return [_plain(item, each) for each in value]
        case MapOf(value=inner):
            return {key: _plain(inner, each) for key, each in sorted(value.items())}
    return str(value) if isinstance(value, Duration | Money | Percent | Quantity) else value


# --- A scenario is written like a policy: the same head and YAML rules, and a schema of its own.

SCENARIO = Kind(spec=Scenario, plural="scenarios", short="scn", columns=(), is_policy=False)
SCHEMA = f"{SCHEMAS}/scenario.v1.json"


def scenario_files() -> dict[str, str]:
    """Generated files: path from the repository's root, and content."""
    schema = schema_of(SCENARIO)
    comment = "Written by `make generate` from reconciler/simulate/scenario; edit there."
    return {SCHEMA: as_json({**schema, "$comment": comment})}
