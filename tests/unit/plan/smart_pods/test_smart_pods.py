"""What is done about smart pods and those who wait for them: the tables of cases, and what always holds."""

from typing import Any

import pytest

from reconciler.plan.feature.feature import declared_in
from reconciler.plan.reasons import code_of
from reconciler.plan.smart_pods import reasons
from reconciler.report.sentences import sentence
from tests.unit.plan.decision_lines import lines_of
from tests.unit.plan.smart_pods.stage import FOLDER, SmartWorld, table

CASES = {name: case for file in sorted(FOLDER.glob("*.yaml")) for name, case in table(file.name).items()}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    case: dict[str, Any] = CASES[name]
    made = SmartWorld(case).planned()
    own = [each for each in made.decisions if each.planner == reasons.PLANNER]
    assert lines_of(own) == case["does"], [sentence(each.reason) for each in own]
    lifted = {
        each.subject.name: sentence(each.reason) for each in made.decisions if each.reason.code == "CapacityThere"
    }
    for pod, node in case.get("lifts", {}).items():
        assert f"Node/{node} " in lifted[pod]
    short = [f"{each.instance_type} {each.capacity_type} {each.zone}".split() for each in made.memory.shortages]
    assert [" ".join(each) for each in short] == case.get("remembers", [])


def test_each_reason_is_shown_by_a_case() -> None:
    shown = {each.reason.code for case in CASES.values() for each in SmartWorld(case).planned().decisions}
    assert {code_of(each) for each in declared_in(reasons)} <= shown


def test_a_pod_that_nobody_can_serve_tells_of_the_first_pools_and_counts_the_others() -> None:
    also: dict[str, Any] = {f"p{number}": {} for number in range(8)}
    case = {"nodes": 0, "also": also, "pending": [{"gpus": 16}]}
    (told_of_pod,) = [each for each in SmartWorld(case).planned().decisions if each.subject.kind == "Pod"]
    said = sentence(told_of_pod.reason)
    assert said.count("16 nvidia.com/gpu requested") == 5
    assert said.endswith("nor can 4 more pools.")
