"""Each example tells its story: those of the design second by second, and none harms a pod."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from reconciler.cli.main import main
from tests.lab.places import REPOSITORY

EXAMPLES = REPOSITORY / "examples"
STORIES = sorted(path.parent for path in EXAMPLES.glob("*/scenario.yaml"))
# Where something is shown to go wrong.
_FAIL = {"taint-edit"}
# What names policies of the whole repository.
_WHOLE = {"demo": ("--tree", str(REPOSITORY))}

Json = dict[str, Any]


def played(name: str, tmp_path: Path, *more: str) -> Json:
    file = tmp_path / "told.json"
    code = main(
        ["simulate", str(EXAMPLES / name / "scenario.yaml"), "-o", f"json={file}", *_WHOLE.get(name, ()), *more]
    )
    assert code == (1 if more else 0)
    told: Json = json.loads(file.read_text())
    return told


def sizes(told: Json) -> dict[str, tuple[int, int, int]]:
    """Size, target and tainted nodes of the pool, by time of day."""
    found = {}
    for step in told["timeline"]:
        pool = step["provisioners"]["a100"]
        found[step["time"][11:19]] = (pool["current_size"], pool["target_size"], pool["tainted"])
    return found


def done(told: Json) -> Counter[tuple[str, str, str]]:
    """How often what was done to nodes, and why, by time of day."""
    actions = [each for step in told["timeline"] for each in step["actions"] if each["verb"] != "label"]
    assert not any(step["actions_left_out"] for step in told["timeline"])
    assert all(each["subject"].startswith("Node/") for each in actions)
    return Counter((each["time"][11:19], each["verb"], each["reason"]) for each in actions)


def test_scenario_a(tmp_path: Path) -> None:
    found = sizes(played("scenario-a", tmp_path))
    assert found["08:00:00"] == (120, 100, 20)
    assert found["08:09:58"] == (120, 100, 20)
    assert found["08:10:00"] == (100, 100, 0)


def test_scenario_b(tmp_path: Path) -> None:
    told = played("scenario-b", tmp_path)
    found = sizes(told)
    assert found["08:00:00"] == (120, 100, 20)
    assert found["08:10:00"] == (100, 75, 0)
    assert found["08:10:05"] == (100, 75, 25)
    assert found["08:20:05"] == (75, 75, 0)
    assert done(told) == {
        ("08:00:00", "taint", "SurplusEmptyNode"): 20,
        ("08:09:30", "taint", "DeletionNear"): 20,
        ("08:10:00", "delete", "EmptyNodeDeleted"): 20,
        ("08:10:01", "taint", "SurplusEmptyNode"): 25,
        ("08:19:31", "taint", "DeletionNear"): 25,
        ("08:20:01", "delete", "EmptyNodeDeleted"): 25,
    }


def test_scenario_c(tmp_path: Path) -> None:
    found = sizes(played("scenario-c", tmp_path))
    assert found["08:00:00"] == (120, 100, 20)
    assert found["08:05:10"] == (120, 110, 10)
    assert found["08:10:00"] == (110, 110, 0)


def test_a_quiet_night_saves_a_third_and_harms_no_pod(tmp_path: Path) -> None:
    summary = played("quiet-day", tmp_path)["summary"]
    # Which pays for more than the scenario expects.
    all_day = played("quiet-day", tmp_path, "--policies", str(EXAMPLES / "quiet-day/policies/all-day"))["summary"]
    assert 3 * summary["gpu_hours_paid"] < 2 * all_day["gpu_hours_paid"]
    assert 3 * summary["micro_dollars"] < 2 * all_day["micro_dollars"]
    assert summary["evictions"] == summary["lost_pods"] == 0


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.name)
def test_each_example_has_a_page_that_says_how_to_play_it(path: Path) -> None:
    assert f"reconciler simulate examples/{path.name}/scenario.yaml" in (path / "README.md").read_text()


@pytest.mark.parametrize("name", sorted(path.name for path in STORIES if path.name not in _FAIL))
def test_what_an_example_expects_is_met(name: str, tmp_path: Path) -> None:
    told = played(name, tmp_path)
    assert not told["failed"]
    assert told["broken"] == []


SHOWN = {"quiet-day": ("capacity.svg", ("by-use", "all-day")), "stock-out": ("queue.svg", ())}


@pytest.mark.parametrize("name", SHOWN)
def test_an_example_shows_what_its_report_draws(name: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    story, (picture, policies) = EXAMPLES / name, SHOWN[name]
    sets = [each for name in policies for each in ("--policies", str(story / "policies" / name))]
    assert main(["simulate", str(story / "scenario.yaml"), *sets, "--report", str(tmp_path)]) in {0, 1}
    drawn, shown = (tmp_path / picture).read_text(), story / picture
    if pytestconfig.getoption("--record"):
        shown.write_text(drawn)
    if shown.read_text() != drawn:
        pytest.fail(
            f"{shown.name} is not what the report draws now: pytest {Path(__file__).name} --record", pytrace=False
        )
