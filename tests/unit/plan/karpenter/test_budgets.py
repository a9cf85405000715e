"""How many nodes of a NodePool may be disrupted at once: the table of cases, and what holds for every budget."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as some

from reconciler.model.instant import instant
from reconciler.plan.karpenter.budgets import allowed_at_once
from tests import folders
from tests.unit.plan.karpenter.stage import NOW

CASES = yaml.safe_load((folders.CASES / "karpenter" / "budgets.yaml").read_text())


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    case: dict[str, Any] = CASES[name]
    disruption = {} if case.get("budgets", "absent") == "absent" else {"budgets": case["budgets"]}
    spec = case.get("spec", {"disruption": disruption})
    now = instant(case["now"]) if "now" in case else NOW
    assert allowed_at_once(spec, case["nodes"], case.get("reason", "Drifted"), now) == case["allowed"]


NODES = some.integers(0, 100).map(lambda percent: f"{percent}%") | some.integers(0, 1000).map(str)
BUDGETS = some.lists(
    some.fixed_dictionaries(
        {"nodes": NODES},
        optional={"reasons": some.lists(some.sampled_from(["Drifted", "Empty", "Underutilized"]), unique=True)},
    ),
    max_size=4,
)


@given(BUDGETS, BUDGETS, some.integers(0, 5000))
def test_a_further_budget_never_allows_more(some_budgets: list[Any], more: list[Any], nodes: int) -> None:
    fewer = allowed_at_once({"disruption": {"budgets": some_budgets}}, nodes, "Drifted", NOW)
    both = allowed_at_once({"disruption": {"budgets": more + some_budgets}}, nodes, "Drifted", NOW)
    assert fewer is None or (both is not None and both <= fewer)


@given(some.integers(1, 100), some.integers(1, 5000))
def test_a_percentage_is_rounded_up_by_less_than_a_node(percent: int, nodes: int) -> None:
    allowed = allowed_at_once({"disruption": {"budgets": [{"nodes": f"{percent}%"}]}}, nodes, "Empty", NOW)
    assert allowed is not None
    assert percent * nodes <= 100 * allowed < percent * nodes + 100
