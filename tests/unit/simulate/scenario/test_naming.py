"""What a scenario names is there, or told with its place; and dumps are played, or told where they can't be read."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from reconciler.cli.main import main
from reconciler.controller.simulation.load import SimulationRequest, prepared
from tests.stages.scaling.drawn import STARTS, pool

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "seen-1", "labels": {"karpenter.sh/nodepool": "old", "topology.kubernetes.io/zone": "here"}},
    "status": {"allocatable": {"cpu": "96", "pods": "110", "nvidia.com/gpu": "8"}},
}


def written(folder: Path, **spec: Any) -> Path:
    files = {"a100.yaml": json.dumps(pool("a100"))}
    later = {**files, "l4.yaml": json.dumps(pool("l4"))}
    whole = {"start": STARTS, "duration": "1h", "policies": [{"files": files}, {"files": later, "at": "30m"}], **spec}
    head = {"apiVersion": "gpu.scheduling/v1", "kind": "Scenario", "metadata": {"name": "named"}}
    (folder / "scenario.yaml").write_text(json.dumps({**head, "spec": whole}))
    return folder / "scenario.yaml"


def told(folder: Path, **spec: Any) -> list[str]:
    found = prepared(SimulationRequest(written(folder, **spec))).checkup.resolved.problems
    assert all(each.line and each.column and each.excerpt for each in found)
    return [f"{each.code} {each.sentence}" for each in found]


def edit(kind: str, **more: Any) -> dict[str, Any]:
    return {"edits": [{"at": "1m", "kind": kind, "labels": {"a": "b"}, **more}]}


def fault(kind: str, **more: Any) -> dict[str, Any]:
    return {"faults": [{"fault": kind, "at": "1m", **more}]}


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({"expect": [{"measure": "nodes", "pool": "a10", "atMost": 1}]}, 'no pool "a10"; did you mean "a100"?'),
        (fault("NodeDeath", pool="a101"), 'no pool "a101"; did you mean "a100"?'),
        (fault("StockOut", instanceType="p4d.xlarge"), 'no instance type "p4d.xlarge"; did you mean "p4d.24xlarge"?'),
        (fault("StockOut", zone="zone-d"), 'no zone "zone-d"; did you mean "zone-c"?'),
        (edit("Node", pool="a101"), 'no pool "a101"; did you mean "a100"?'),
        (edit("Node", name="a100-00o1"), 'no Node "a100-00o1"; did you mean "a100-0001"?'),
        (edit("NodePool", name="h100"), 'no NodePool "h100"; did you mean "a100"?'),
        (edit("NodeClaim", name="b-00001"), 'no NodeClaim "b-00001"'),
        (edit("Namespace", name="defult"), 'no Namespace "defult"; did you mean "default"?'),
    ],
)
def test_a_name_that_nobody_knows_is_told(tmp_path: Path, spec: dict[str, Any], sentence: str) -> None:
    (found,) = told(tmp_path, cluster={"nodes": [{"pool": "a100", "count": 1}]}, **spec)
    assert found.startswith("RC301 there is " + sentence)


@pytest.mark.parametrize(
    ("group", "sentence"),
    [
        ({"pool": "a10", "count": 1}, 'RC301 the first policies declare no pool "a10"; did you mean "a100"?'),
        ({"pool": "l4", "count": 1}, 'RC301 the first policies declare no pool "l4"'),
        (
            {"pool": "a100", "count": 1, "instanceType": "p5"},
            'RC301 there is no instance type "p5"',
        ),
    ],
)
def test_nodes_are_of_a_pool_of_the_first_policies(tmp_path: Path, group: dict[str, Any], sentence: str) -> None:
    assert told(tmp_path, cluster={"nodes": [group]}) == [sentence]


def test_a_fault_takes_only_what_is_said_of_it(tmp_path: Path) -> None:
    assert told(tmp_path, **fault("StockOut", pool="a100")) == ["RC310 a StockOut has no pool"]
    assert told(tmp_path, **fault("NodeDeath", zone="zone-a")) == ["RC310 a NodeDeath has no zone"]
    assert told(tmp_path, **fault("SlowApi", capacityType="spot")) == ["RC310 a SlowApi has no capacityType"]
    assert told(tmp_path, **fault("NotOffered", instanceType="p4d.24xlarge", zone="zone-a")) == []


@pytest.mark.parametrize(
    "spec",
    [
        {"expect": [{"measure": "nodes", "pool": "l4", "atMost": 1}]},
        fault("NodeDeath", pool="l4"),
        fault("StockOut", instanceType="g6.12xlarge", zone="zone-b"),
        edit("NodePool", name="l4"),
        edit("Node", name="l4-00001"),
        edit("Namespace", name="default"),
    ],
    ids=str,
)
def test_what_comes_to_be_later_is_known(tmp_path: Path, spec: dict[str, Any]) -> None:
    assert told(tmp_path, **spec) == []


def test_what_a_dump_has_is_known_and_played(tmp_path: Path) -> None:
    (tmp_path / "seen.json").write_text(json.dumps({"kind": "List", "items": [NODE]}))
    scenario = written(
        tmp_path,
        cluster={"dump": "seen.json"},
        edits=[{"at": "1m", "kind": "Node", "name": "seen-1", "unschedulable": True}],
        faults=[{"fault": "NodeDeath", "at": "2m", "pool": "old"}, {"fault": "StockOut", "at": "2m", "zone": "here"}],
        expect=[{"measure": "nodes", "pool": "old", "at": "1m", "atLeast": 1}],
    )
    assert main(["simulate", str(scenario), "-o", f"json={tmp_path / 'told'}"]) == 0
    happenings = msgspec.json.decode((tmp_path / "told").read_bytes())["happenings"]
    assert [each["told"] for each in happenings] == [
        "Node/seen-1: cordoned, by a user",
        "1 machine dies: seen-1",
        "no machine in here can be launched",
    ]


def test_a_dump_that_is_not_there_is_told_with_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", str(written(tmp_path, cluster={"dump": "gone.dump"}))]) == 3
    assert "scenario.yaml:1:" in (shown := capsys.readouterr().err)
    assert "gone.dump cannot be read: No such file or directory" in shown


def test_a_dump_that_is_none_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.dump").write_text("{")
    assert main(["simulate", str(written(tmp_path, cluster={"dump": "bad.dump"}))]) == 3
    assert "bad.dump:" in capsys.readouterr().err


def test_several_environments_are_chosen_from_in_the_scenario(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("east", "west"):
        (tmp_path / "policies" / "overlays" / name).mkdir(parents=True)
        (tmp_path / "policies" / "overlays" / name / "a.yaml").write_text(json.dumps(pool("a100")))
    (tmp_path / "policies" / "base").mkdir()
    (tmp_path / "policies" / "base" / "a.yaml").write_text(json.dumps(pool("a100")))
    assert main(["simulate", str(written(tmp_path, policies=[{"folder": "policies"}]))]) == 64
    assert "choose one with spec.environment: " in capsys.readouterr().err
