"""A plan's forecast: from a cluster as it was seen, its load goes on, and the change shows what it does."""

import contextlib
import json
from pathlib import Path

import jsonschema
import msgspec
import pytest

from reconciler.cli.main import main
from reconciler.controller.simulation.load import SimulationRequest, prepared
from reconciler.model.instant import Instant
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.files import dump
from reconciler.report.generated import PLAN, published_files
from reconciler.simulate.bootstrap.market import market_of
from reconciler.simulate.bootstrap.nodes import put_nodes, put_pools
from reconciler.simulate.scenario.cluster import Constant, ScenarioWorkload, WorkloadToleration
from reconciler.simulate.workloads import replicas_of
from reconciler.simulate.world import World
from tests.lab.places import REPOSITORY
from tests.processes.script_worlds import pull_request

EXAMPLE = REPOSITORY / "examples" / "taint-edit"
PULL_REQUEST = ("plan", "--base", "main", "--cluster", "cluster.json", "--complete", "--forecast", "2h")
FORMATS = ("text", "json", "markdown", "html")


def dumped(path: Path) -> Path:
    """The example's cluster at its beginning, with a pod of one replica set on each of its first three nodes."""
    play = prepared(SimulationRequest(EXAMPLE / "scenario.yaml")).plays[0]
    world = World(play.start)
    put_pools(world, play.first)
    put_nodes(world, play, market_of(play))
    workload = ScenarioWorkload(
        name="web", gpus=8, tolerations=[WorkloadToleration(key="dedicated")], constant=Constant(pods=3)
    )
    made = replicas_of(workload, 3)
    owner = world.put(made)
    template = made["spec"]["template"]
    for number in (1, 2, 3):
        owners = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": owner.uid, "controller": True}]
        metadata = {**template["metadata"], "name": f"web-{number}", "namespace": "default", "ownerReferences": owners}
        spec = {**template["spec"], "nodeName": f"a100-{number:04d}"}
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        world.put({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status})
    file = path / "cluster.dump"
    file.write_bytes(dump.write(Inputs(play.first, world.observe(), Instant(play.start))))
    return file


@pytest.mark.parametrize(("policies", "evictions", "removed"), [("before", "0", ""), ("after", "3", "nodes removed")])
def test_what_runs_goes_on_and_the_change_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], policies: str, evictions: str, removed: str
) -> None:
    asked = ["plan", "--cluster", str(dumped(tmp_path)), "--policies", str(EXAMPLE / "policies" / policies)]
    assert main([*asked, "--forecast", "2h"]) == 0
    told = capsys.readouterr().out
    forecast = told[told.index("The next 2 h, if the present load continues") :]
    lines = [line.rsplit(maxsplit=1) for line in forecast.splitlines() if line.strip()]
    figures = {line[0].strip(): line[-1] for line in lines}
    assert figures["evictions"] == evictions
    assert "nodes at the end" in figures
    assert not removed or removed in figures


def test_no_forecast_goes_beyond_the_last_time_that_can_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock of the controller would stand still there, and each cycle would be due at once."""
    monkeypatch.setattr("reconciler.controller.simulation.run.run", None)
    asked = ["plan", "--cluster", str(dumped(tmp_path)), "--policies", str(EXAMPLE / "policies" / "before")]
    assert main([*asked, "--forecast", "2h", "--now", "9999-12-31T23:30:00Z"]) == 1
    assert "the forecast ends after the year 9999" in capsys.readouterr().err


NO_TIME = ("0000-01-01T00:00:00Z", "2026-02-30T00:00:00Z", "²")


@pytest.mark.parametrize("field", ["creationTimestamp", "deletionTimestamp", "startTime"])
def test_a_time_that_nobody_can_read_stops_no_forecast(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], field: str
) -> None:
    cluster = json.loads((REPOSITORY / "examples" / "production" / "cluster.json").read_text())
    for number, each in enumerate(cluster["items"]):
        text = NO_TIME[number % len(NO_TIME)]
        if field == "creationTimestamp" or (field == "deletionTimestamp" and each["kind"] in {"Pod", "NodeClaim"}):
            each["metadata"][field] = text
        elif field == "startTime" and each["kind"] == "Pod":
            each["status"][field] = text
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps(cluster))
    asked = ["plan", "--cluster", str(file), "--complete", "--policies", str(REPOSITORY / "policies"), "-e", "base"]
    assert main([*asked, "--now", "2026-11-20T12:00:00Z", "--forecast", "1m"]) in {0, 4}
    assert "if the present load continues" in capsys.readouterr().out


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Of a pull request that edits a taint, on what kubectl printed: without Jobs and DaemonSets."""
    folder = tmp_path_factory.mktemp("pull-request")
    pull_request(folder)
    with contextlib.chdir(folder):
        main([*PULL_REQUEST, *(each for form in FORMATS for each in ("-o", f"{form}=out.{form}"))])
    return {form: (folder / f"out.{form}").read_text(encoding="utf-8") for form in FORMATS}


def test_the_json_of_a_plan_has_its_forecast(told: dict[str, str]) -> None:
    plan = msgspec.json.decode(told["json"])
    jsonschema.Draft7Validator(json.loads(published_files()[PLAN])).validate(plan)
    forecast = plan["forecast"]
    assert forecast["seconds"] == 7_200
    without, held, approved = (forecast[each] for each in ("without", "with", "approved"))
    assert (without["evictions"], without["nodes"], without["gpus"]) == (0, 66, 504)
    # Smart pods ask for what the pool lacks of its smallest size, 60 nodes.
    # The guard holds the edited NodePool; once it is approved, all six busy nodes that can be emptied are.
    assert (held["evictions"], held["held_by_guards"], held["nodes"]) == (0, 1, 66)
    assert (approved["evictions"], approved["held_by_guards"]) == (12, 0)
    assert approved["nodes_removed"] == 10
    assert approved["micro_dollars"] < without["micro_dollars"]


def test_what_is_lost_of_a_job_that_nobody_read_is_made_anew(told: dict[str, str]) -> None:
    approved = msgspec.json.decode(told["json"])["forecast"]["approved"]
    assert approved["nodes_bought"] > 0
    assert approved["pending_pods"] == 0


@pytest.mark.parametrize("form", [form for form in FORMATS if form != "json"])
def test_people_read_of_it_in_every_format(told: dict[str, str], form: str) -> None:
    assert "The next 2 h, if the present load continues" in told[form]
    assert "once approved" in told[form]
    assert "guards hold 1 decision" in told[form]
    assert "GPUs at the end" in told[form]


def test_an_edit_of_prices_costs_nothing_in_the_next_hours(tmp_path: Path) -> None:
    pull_request(tmp_path)
    asked = [*PULL_REQUEST[:-1], "5m", "-o", "json=plan.json"]
    with contextlib.chdir(tmp_path):
        policy = Path("policies/base/a100-training.yaml")
        policy.write_text(
            policy.read_text()
            .replace("14.75", "15.75")
            .replace(", {key: dedicated, value: training, effect: NoSchedule}", "")
        )
        assert main(asked) == 0
        plan = msgspec.json.decode(Path("plan.json").read_bytes())
    assert plan["impact"]["repriced_micro_dollars_per_hour"] == 60_000_000
    assert plan["forecast"]["without"]["micro_dollars"] == plan["forecast"]["with"]["micro_dollars"] > 0


def test_without_the_option_there_is_none(tmp_path: Path) -> None:
    policies = str(EXAMPLE / "policies" / "before")
    out = tmp_path / "out"
    assert main(["plan", "--cluster", str(dumped(tmp_path)), "--policies", policies, "-o", f"json={out}"]) == 0
    assert msgspec.json.decode(out.read_bytes())["forecast"] is None
