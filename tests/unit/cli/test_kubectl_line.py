"""`dump --kubectl` prints one command line, by which kubectl writes all that a plan is made from."""

import re
import shlex
from pathlib import Path

import pytest

from reconciler.cli.main import main
from reconciler.model.cluster.kinds import RESOURCE_KINDS
from tests.lab.places import REPOSITORY

POOL = """\
apiVersion: gpu.scheduling/v1
kind: GpuPool
metadata: {name: a100}
spec:
  devices: {model: a100, count: 8, memory: 40Gi}
  instanceTypes: [{name: p4d.24xlarge, capacity: {cpu: 96, memory: 1152Gi}}]
  nodeClassRef: {group: example.com, kind: RackNodeClass, name: gpu}
"""


def listed(line: str) -> set[str]:
    found = re.search(r"grep -xE '([^']+)'", line)
    assert found
    return set(found[1].split("|"))


def test_without_policies_every_kind_is_listed_that_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["dump", "--kubectl"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert listed(line) == {each.resource for each in RESOURCE_KINDS if not each.namespace_for("here")}
    for where in ("gpu-system", "gpu-leases"):
        assert f" && kubectl get leases.coordination.k8s.io -n {where} -o json" in line
    assert " -o json; } > cluster.json && " in line
    assert line.endswith("reconciler plan --cluster cluster.json --complete")


def test_of_node_classes_those_are_listed_that_the_policies_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fleet one").mkdir()
    (tmp_path / "fleet one" / "pool.yaml").write_text(POOL)
    assert main(["dump", "--kubectl", "--policies", "fleet one", "-e", "base"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert {name for name in listed(line) if "nodeclass" in name} == {"racknodeclasses.example.com"}
    plan = shlex.split(line.rpartition(" && ")[2])
    assert plan == shlex.split("reconciler plan --policies 'fleet one' -e base --cluster cluster.json --complete")


def test_policies_with_a_mistake_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "pool.yaml").write_text(POOL.replace("8", "eight"))
    assert main(["dump", "--kubectl"]) == 3
    assert capsys.readouterr().out == ""


def test_the_example_policies_have_a_line_for_production(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(REPOSITORY)
    assert main(["dump", "--kubectl", "-e", "prod"]) == 0
    assert "plan -e prod --cluster cluster.json" in capsys.readouterr().out
