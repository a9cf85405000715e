"""The mix of jobs is what its shares say, has a heavy tail and comes by day; as a trace it can be read again."""

from collections import Counter
from pathlib import Path
from random import Random
from statistics import median

import pytest

from reconciler.cli.main import main
from reconciler.model.bundle import Text
from reconciler.model.instant import Instant
from reconciler.model.quantity import Duration, Percent, Quantity
from reconciler.simulate.openb import read_nodes, read_pods
from reconciler.simulate.scenario.cluster import (
    Constant,
    Inference,
    InitialCluster,
    Mix,
    NodeSet,
    ScenarioWorkload,
    Shares,
)
from reconciler.simulate.scenario.reading import scenario_text
from reconciler.simulate.scenario.spec import Scenario, ScenarioRevision
from reconciler.simulate.stage import Engine, Stage
from reconciler.simulate.workloads import Arrivals, draw
from reconciler.simulate.world import World

DRAWN = 20_000
HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    "shares", [Shares(), Shares(cpu_only=0, part_of_gpu=3, one_gpu=1, two_gpus=0, four_gpus=0, eight_gpus=0)]
)
def test_jobs_are_of_each_size_as_often_as_is_declared(shares: Shares) -> None:
    chance = Random(7)
    found = Counter(_size(*_drawn(chance, shares)) for _ in range(DRAWN))
    whole = sum(getattr(shares, name) for name in shares.__struct_fields__)
    for name in shares.__struct_fields__:
        assert found[name] / DRAWN == pytest.approx(getattr(shares, name) / whole, abs=0.01), name


def test_run_times_have_a_heavy_tail() -> None:
    chance = Random(7)
    shares = Shares(cpu_only=0, part_of_gpu=0, two_gpus=0, four_gpus=0, eight_gpus=0)
    seconds = sorted(draw(chance, "job", shares, 8).seconds for _ in range(DRAWN))
    assert sum(seconds) / DRAWN == pytest.approx(3_000, rel=0.05)
    assert sum(seconds) / DRAWN > 1.8 * median(seconds)
    assert seconds[DRAWN * 99 // 100] > 12 * median(seconds)


def test_a_pod_asks_for_no_more_than_a_node_has() -> None:
    chance = Random(7)
    assert max(draw(chance, "job", Shares(), 4).gpus or 0 for _ in range(500)) == 4


def test_as_many_come_a_day_as_are_declared_and_more_of_them_by_day() -> None:
    mix = Mix(per_day=3_000, quietest_percent=Percent(2_000), busiest_hour=14)
    engine = Engine(3, Instant(0))
    stage = Stage(engine, World())
    Arrivals(ScenarioWorkload(name="mixed", mix=mix)).start(stage)
    came: Counter[int] = Counter()
    stage.world.subscribe(lambda _: came.update([stage.now // HOUR_MS % 24]))
    engine.run(Instant(3 * 24 * HOUR_MS))
    assert came.total() / 3 == pytest.approx(3_000, rel=0.05)
    assert came[2] / came[14] == pytest.approx(0.2, abs=0.06)


def test_a_trace_that_is_written_is_read_as_what_came(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capacity = {"cpu": Quantity.parse("96"), "memory": Quantity.parse("1Ti"), "nvidia.com/gpu": Quantity.parse("8")}
    scenario = Scenario(
        duration=Duration(24 * HOUR_MS),
        policies=[ScenarioRevision(files={"none.yaml": "---\n"})],
        cluster=InitialCluster(nodes=[NodeSet(name="big", count=3, capacity=capacity)]),
        workloads=[
            ScenarioWorkload(name="mixed", mix=Mix(per_day=200)),
            ScenarioWorkload(name="notebooks", gpus=1, priority=1_000, constant=Constant(pods=4)),
            ScenarioWorkload(name="web", gpus=1, inference=Inference(least=1, most=5)),
        ],
    )
    (tmp_path / "s.yaml").write_text(scenario_text("made", scenario), encoding="utf-8")
    assert main(["simulate", str(tmp_path / "s.yaml"), "--write-trace", str(tmp_path / "trace")]) == 0
    told = capsys.readouterr()
    assert told.out == ""
    assert "nodes.csv: 3 nodes" in told.err
    nodes, pods = (Text(name, (tmp_path / "trace" / name).read_bytes()) for name in ("nodes.csv", "pods.csv"))
    assert [dict(each.capacity)["nvidia.com/gpu"] for each in read_nodes(nodes).nodes] == ["8", "8", "8"]
    found = read_pods(pods)
    assert found.problems == ()
    endless = [job.name for _, job in found.jobs if not job.seconds and job.priority]
    assert len(endless) == 4
    assert any(job.gpu_milli < 1_000 for _, job in found.jobs)
    of_web = [job for _, job in found.jobs if job.name.startswith("web")]
    assert len(of_web) > 4
    assert any(job.seconds for job in of_web)


def _drawn(chance: Random, shares: Shares) -> tuple[int, int]:
    found = draw(chance, "job", shares, 8)
    return found.gpus or 0, found.gpu_milli


def _size(gpus: int, milli: int) -> str:
    if gpus == 1:
        return "part_of_gpu" if milli < 1_000 else "one_gpu"
    return {0: "cpu_only", 2: "two_gpus", 4: "four_gpus", 8: "eight_gpus"}[gpus]
