"""Plays are reproducible and judged: the example tells its story, a planted bug is found, told and shrunk."""

import shutil
from pathlib import Path

import msgspec
import pytest

from reconciler.cli.main import main
from reconciler.controller.simulation.load import SimulationRequest, prepared
from reconciler.controller.simulation.report_page import page_of
from reconciler.loop.cycle import InProcess
from reconciler.model.plan.decision import Decision, Delete, Preconditions, Ref
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.plan import Plan
from reconciler.model.quantity import Duration
from reconciler.report.simulation.simulated import Simulated
from reconciler.simulate.runner.play import Play
from reconciler.simulate.runner.run import RunOptions, run
from reconciler.simulate.runner.shrink import how_it_fails, shrink
from tests.lab.places import REPOSITORY
from tests.unit.plan.some_reasons import some_reason

EXAMPLE = REPOSITORY / "examples" / "taint-edit" / "scenario.yaml"
BUSY = "reconciler deletes no node with a workload pod"


class Planted(InProcess):
    """A Brain that deletes the first node by name that has a pod on it, as nobody may."""

    def plan(self, inputs: Inputs) -> Plan:
        plan = super().plan(inputs)
        busy = {pod.node for pod in inputs.observed.pods if pod.node and pod.counts}
        there = sorted(inputs.observed.nodes, key=lambda each: each.name)
        victim = next((each for each in there if each.name in busy and not each.metadata.leaving), None)
        if victim is None:
            return plan
        subject = Ref("Node", "", victim.name, victim.metadata.uid)
        decision = Decision("planted", subject, Delete(presumes=Preconditions()), some_reason("Planted"), "a100")
        return msgspec.structs.replace(plan, decisions=(*plan.decisions, decision))


def play(**changes: object) -> Play:
    found = prepared(SimulationRequest(EXAMPLE)).plays[0]
    scenario = msgspec.structs.replace(found.scenario, **changes)
    return msgspec.structs.replace(found, scenario=scenario)


def planted(each: Play) -> Simulated:
    return run(each, RunOptions(brain=Planted, stops_when_broken=True))


def test_the_edited_taint_evicts_and_the_day_without_it_does_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", str(EXAMPLE)]) == 1
    assert "FAILED: evictions: at most 0, found" in capsys.readouterr().out
    before = EXAMPLE.parent / "policies" / "before"
    assert main(["simulate", str(EXAMPLE), "--policies", str(before), "-o", "json"]) == 0
    told = msgspec.json.decode(capsys.readouterr().out)
    assert told["summary"]["evictions"] == 0
    assert told["summary"]["nodes"] == 12
    assert told["timeline"][-1]["time"] == told["end"]


def test_another_seed_tells_another_day() -> None:
    sums = [run(msgspec.structs.replace(play(duration=Duration(3_600_000)), seed=seed)).sums for seed in (1, 2)]
    assert sums[0] != sums[1]


def test_a_planted_bug_is_found_and_its_event_told() -> None:
    found = planted(play(duration=Duration(1_800_000)))
    assert {each.rule for each in found.broken} == {BUSY}
    assert found.broken[0].event == "a cycle"
    assert "is deleted with Pod/default/" in found.broken[0].sentence


def test_a_failing_play_is_shrunk_to_what_matters() -> None:
    whole = play(duration=Duration(1_800_000))
    before = how_it_fails(planted(whole))
    small = shrink(whole, lambda each: bool(before & how_it_fails(planted(each))), most_tries=60).scenario
    assert len(small.workloads) == 1
    assert len(small.policies) == 1
    assert sum(each.count for each in small.cluster.nodes) <= 1  # Karpenter buys what is needed
    assert small.duration < whole.scenario.duration


def test_a_shrunk_scenario_can_be_played_where_it_is_written(tmp_path: Path) -> None:
    story = EXAMPLE.read_text(encoding="utf-8").replace("duration: 12h", "duration: 130m")
    expected = "expect: [{measure: nodes, atLeast: 20}]"
    folder = shutil.copytree(EXAMPLE.parent, tmp_path / "example")
    scenario = story[: story.index("  workloads:")] + f"  {expected}\n"
    (folder / EXAMPLE.name).write_text(scenario, encoding="utf-8")
    (tmp_path / "elsewhere").mkdir()
    small = tmp_path / "elsewhere" / "small.yaml"
    assert main(["simulate", str(folder / EXAMPLE.name), "--shrink", str(small)]) == 1
    text = small.read_text(encoding="utf-8")
    assert "folder: ../example/policies/before" in text
    assert "policies/after" not in text  # it matters nothing to the nodes that are missing
    assert main(["simulate", str(small)]) == 3  # what it names is not beside it
    assert main(["simulate", str(small), "--tree", str(tmp_path)]) == 1


def test_a_page_has_all_pictures_and_fetches_nothing() -> None:
    short = play(duration=Duration(3 * 3_600_000))
    found, again = (page_of((run(short),), "1.0") for _ in range(2))
    page = found.html
    assert found == again
    assert found.note == ""
    assert len(found.pictures) == 5
    assert page.count("<svg") == 5
    assert "currentColor" in page
    assert "<script" not in page
    assert 'src="' not in page


def test_a_scenario_with_problems_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = tmp_path / "s.yaml"
    wrong.write_text(EXAMPLE.read_text(encoding="utf-8").replace("duration:", "lasts:"), encoding="utf-8")
    assert main(["simulate", str(wrong)]) == 3
    assert 'unknown key "lasts"' in capsys.readouterr().err
