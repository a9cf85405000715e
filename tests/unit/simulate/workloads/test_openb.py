"""The openb trace is read straight from its two lists, and played; a made-up pair of them is enough to show it."""

import re
import shutil
from pathlib import Path

import msgspec
import pytest

from reconciler.cli.main import main
from reconciler.controller.simulation.load import SimulationRequest, prepared
from reconciler.model.bundle import Text
from reconciler.simulate.openb import MOST_PROBLEMS, read_nodes, read_pods
from reconciler.simulate.runner.run import run
from tests.lab.places import REPOSITORY

PAIR = REPOSITORY / "tests" / "cases" / "openb"
NODES = (PAIR / "nodes.csv").read_text(encoding="utf-8")
PODS = (PAIR / "pods.csv").read_text(encoding="utf-8")
HEADING = PODS.splitlines(keepends=True)[0]


def text(content: str) -> Text:
    return Text("pods.csv", content.encode())


def test_nodes_have_what_their_line_says() -> None:
    first, second, third = read_nodes(text(NODES)).nodes
    assert (first.name, first.model, dict(first.capacity)["nvidia.com/gpu"]) == ("openb-node-0001", "p100", "2")
    assert dict(second.capacity) == {"cpu": "96000m", "memory": "393216Mi", "nvidia.com/gpu": "8", "pods": "250"}
    assert "nvidia.com/gpu" not in dict(third.capacity)


def test_pods_come_in_order_of_time_counted_from_the_first() -> None:
    jobs = read_pods(text(PODS)).jobs
    assert [(after_ms // 1_000, job.name[-1]) for after_ms, job in jobs] == [
        (0, "3"),
        (50, "1"),
        (950, "2"),
        (1_050, "4"),
        (1_150, "5"),
    ]


def test_a_pod_runs_from_its_node_to_its_end() -> None:
    jobs = {job.name[-1]: job for _, job in read_pods(text(PODS)).jobs}
    assert jobs["2"].seconds == 3_590
    assert jobs["1"].seconds == 3_600  # when it got its node is not told
    assert jobs["1"].models == ("v100m16", "v100m32")
    assert (jobs["1"].gpus, jobs["1"].priority) == (8, 1_000)
    assert jobs["4"].seconds == 0  # it runs on


def test_how_parts_of_a_gpu_and_pods_without_an_end_are_imagined_is_told() -> None:
    assert read_pods(text(PODS)).notices == (
        "1 of 5 pods of the trace request part of a GPU and get a whole one",
        "1 of 5 pods of the trace have no end and run until the end of the simulation",
    )


def test_what_ran_at_the_beginning_comes_at_once_and_runs_for_the_rest() -> None:
    jobs = read_pods(text(PODS), from_ms=350_000).jobs
    assert [(after_ms, job.name[-1], job.seconds) for after_ms, job in jobs[:2]] == [
        (0, "1", 3_300),
        (600_000, "2", 3_590),
    ]


@pytest.mark.parametrize(
    ("content", "line", "sentence"),
    [
        ("name,cpu_milli\n", 1, "the column memory_mib is missing"),
        (HEADING + "a,1\n", 2, "expected 11 values, got 2"),
        (PODS + "b,many,1,1,1000,,BE,Running,1,2,1\n", 7, 'cpu_milli: expected a number, got "many"'),
        (PODS + "b,1,1,-1,1000,,BE,Running,1,2,1\n", 7, "num_gpu: -1 is out of range"),
        (PODS + "b,1,1,2,500,,BE,Running,1,2,1\n", 7, "gpu_milli: 500 of 2 GPUs"),
        (PODS + "b,1,1,1,1000,,Best,Running,1,2,1\n", 7, 'qos: unknown value "Best"'),
        (PODS + "b,1,1,1,1000,,BE,Running,9,2,1\n", 7, "deletion_time is before the pod's creation"),
        (PODS + "openb-pod-0001,1,1,1,1000,,BE,Running,1,2,1\n", 7, "name: duplicate name openb-pod-0001"),
    ],
)
def test_a_bad_line_is_named(content: str, line: int, sentence: str) -> None:
    (wrong,) = read_pods(text(content)).problems
    assert (wrong.file, wrong.line, wrong.sentence) == ("pods.csv", line, sentence)
    assert wrong.remedy


def test_all_bad_lines_are_told_up_to_a_number() -> None:
    found = read_nodes(text("sn,cpu_milli,memory_mib,gpu,model\n" + "a,x,y,1,\n" * 30)).problems
    assert len(found) == MOST_PROBLEMS + 1
    assert found[-1].sentence == f"{3 * 30 - 1 - MOST_PROBLEMS} more problems in this file"


def test_the_pair_is_played_as_it_says() -> None:
    (play,) = prepared(SimulationRequest(PAIR / "scenario.yaml")).plays
    found = run(play)
    assert found.sums.finished_pods == 3
    assert found.sums.nodes == 3
    assert found.sums.pending_pods == 1  # no node has a T4
    assert [each.pending_gpus for each in found.steps[-2:]] == [1, 1]
    # Eight GPUs for an hour, and one of two P100s for 3,590 s; then both of these to the end: their pod has waited.
    used = found.sums.gpu_ms_used / 1_000
    assert used == pytest.approx(8 * 3_600 + 3_590 + 2 * (7_200 - 950 - 3_590), abs=100)
    assert found.notices == read_pods(text(PODS)).notices


def test_problems_of_a_trace_are_told_like_those_of_policies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(PAIR, tmp_path / "openb")
    (folder / "pods.csv").write_text(PODS + "b,many,1,1,1000,,BE,Running,1,2,1\n", encoding="utf-8")
    assert main(["simulate", str(folder / "scenario.yaml"), "-o", "json"]) == 3
    told = msgspec.json.decode(capsys.readouterr().out)
    (problem,) = told["problems"]
    assert problem["file"].endswith("openb/pods.csv")
    assert problem["line"] == 7


def test_a_trace_that_is_not_there_is_told_by_its_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = shutil.copytree(PAIR, tmp_path / "openb")
    (folder / "nodes.csv").unlink()
    assert main(["simulate", str(folder / "scenario.yaml")]) == 3
    told = capsys.readouterr().err
    assert re.search(r"openb/scenario\.yaml:\d+:\d+: error\[RC501\]: .*nodes\.csv cannot be read: No such file", told)
