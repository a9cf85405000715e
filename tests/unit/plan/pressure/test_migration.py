"""Which pods leave a node under pressure: the table of cases."""

from typing import Any

import pytest
import yaml

from reconciler.report.sentences import sentence
from tests.folders import CASES as FOLDER
from tests.unit.plan.decision_lines import lines_of
from tests.unit.plan.pressure.stage import World, migrations_after
from tests.unit.plan.scaling.stage import NOW

CASES: dict[str, dict[str, Any]] = yaml.safe_load((FOLDER / "pressure" / "migration.yaml").read_text())


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    case = CASES[name]
    made = World(case).planned()
    decisions = [each for each in made.decisions if each.planner == "pressure" or case.get("drains")]
    assert lines_of(decisions) == case["does"]
    assert migrations_after(made) == case.get("moves", {})
    if "wakes" in case:
        assert made.wake_at is not None
        assert (made.wake_at - NOW) / 1_000 == case["wakes"]
    sentences = [sentence(each.reason) for each in decisions]
    for words in case.get("says", []):
        assert any(words in each for each in sentences), sentences
