"""How a simulation is told: what is left out is counted, dollars are dollars, and nothing is told that is not so."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from reconciler.cli.main import main
from reconciler.model.instant import Instant
from reconciler.report.document import ItemList
from reconciler.report.simulation.simulated import Did, Happening, Simulated, SimulationTotals, TimelineStep
from reconciler.report.simulation.simulated_document import MOST_MOMENTS, story
from reconciler.simulate.results.recorder import MOST_HAPPENINGS
from tests.lab.places import REPOSITORY
from tests.stages.scaling.drawn import STARTS, pool
from tests.unit.simulate.stage import START

EXAMPLE = REPOSITORY / "examples" / "taint-edit"


def step(at: int, **more: Any) -> TimelineStep:
    return TimelineStep(Instant(START + at), (), 0, 0, 0, 0, **more)


def run(**more: Any) -> Simulated:
    end = Instant(START + 3_600_000)
    return Simulated("a", "", 1, START, end, SimulationTotals(), **{"steps": (step(0),), "revisions": (), **more})


def told(simulated: Simulated) -> list[str]:
    found = story(simulated)
    assert isinstance(found, ItemList)
    return [text for item in found.items for text in (item.title, *(each.text for each in item.details))]


def test_moments_that_are_not_told_are_counted_and_so_is_what_json_leaves_out() -> None:
    many = tuple(Happening(Instant(START + at), "the controller crashes") for at in range(MOST_MOMENTS + 3))
    assert told(run(happenings=many))[-1] == "3 more moments: -o json lists all of them"
    last = told(run(happenings=many, happenings_more=7))[-1]
    assert last == "3 more moments: -o json lists them, except 7 faults and edits"
    steps = (step(0, did=(Did(START, "patch", "Node/a", "Why"),), did_more=1),)
    assert told(run(happenings=many, happenings_more=1, steps=steps))[-1] == (
        "4 more moments: -o json lists them, except 1 write and 1 fault or edit"
    )


def test_writes_that_are_not_told_one_by_one_are_called_writes() -> None:
    did = (Did(START, "patch", "Node/a", "Why"),)
    assert told(run(steps=(step(0, did=did, did_more=100),)))[-1] == "and 100 more writes"


def test_json_counts_the_faults_and_edits_that_it_leaves_out(tmp_path: Path) -> None:
    often = {"fault": "ControllerCrash", "at": "0s", "every": "10s"}
    found = played(tmp_path, duration="1h", faults=[often])
    assert len(found["happenings"]) == MOST_HAPPENINGS
    assert found["happenings_left_out"] == 361 - MOST_HAPPENINGS


def test_money_is_told_in_dollars(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expect = [{"measure": "dollars", "atMost": 1}, {"measure": "dollars", "atMost": 5000}]
    found = played(tmp_path, code=1, cluster={"nodes": [{"pool": "a100", "count": 4}]}, expect=expect)
    assert [each["told"] for each in found["expectations"]] == ["cost: at most $1", "cost: at most $5,000"]
    main(["simulate", str(tmp_path / "scenario.yaml")])
    assert "FAILED: cost: at most $1, found $34" in capsys.readouterr().out


def test_an_edit_that_finds_nobody_is_told_so(tmp_path: Path) -> None:
    edits = [
        {"at": "1m", "kind": "Node", "pool": "a100", "deleted": True},
        {"at": "2m", "kind": "Node", "name": "a100-00009", "unschedulable": True},
        {"at": "3m", "kind": "PodDisruptionBudget", "name": "web", "deleted": True},
    ]
    workloads = [{"name": "web", "constant": {"pods": 1}}]
    assert [each["told"] for each in played(tmp_path, edits=edits, workloads=workloads)["happenings"]] == [
        "no effect, since there was no Node of a100: deleted",
        "no effect, since there was no Node a100-00009: cordoned",
        "no effect, since there was no PodDisruptionBudget web: deleted",
    ]


def test_policies_that_say_the_same_come_into_force_unseen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sets = [each for name in ("before", "after") for each in ("--policies", str(EXAMPLE / "policies" / name))]
    scenario = tmp_path / "scenario.yaml"
    text = (EXAMPLE / "scenario.yaml").read_text(encoding="utf-8").replace("duration: 12h", "duration: 121m")
    scenario.write_text(text.replace("folder: policies", f"folder: {EXAMPLE}/policies"), encoding="utf-8")
    main(["simulate", str(scenario), "--tree", "/", *sets])
    shown = capsys.readouterr().out
    assert "after is now in force" in shown
    assert "before is now in force" not in shown


def test_a_picture_says_of_which_days_it_is_and_where_there_is_nothing(tmp_path: Path) -> None:
    played(tmp_path, "--report", str(tmp_path / "report"), duration="24h")
    shown = (tmp_path / "report" / "disruption.svg").read_text(encoding="utf-8")
    assert "2026-11-16 to 2026-11-17, UTC" in shown
    assert ">none<" in shown
    assert ">none<" not in (tmp_path / "report" / "capacity.svg").read_text(encoding="utf-8")


def played(folder: Path, *options: str, code: int = 0, **spec: Any) -> dict[str, Any]:
    whole = {"start": STARTS, "duration": "1h", "policies": [{"files": {"a.yaml": json.dumps(pool("a100"))}}], **spec}
    head = {"apiVersion": "gpu.scheduling/v1", "kind": "Scenario", "metadata": {"name": "told"}}
    (folder / "scenario.yaml").write_text(json.dumps({**head, "spec": whole}))
    assert main(["simulate", str(folder / "scenario.yaml"), "-o", f"json={folder / 'told'}", *options]) == code
    found: dict[str, Any] = msgspec.json.decode((folder / "told").read_bytes())
    return found
