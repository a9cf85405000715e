"""The dry run on a real cluster, with rights to look and no others: what it says, and that it writes nothing."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from reconciler.cli.main import main
from reconciler.model import names
from tests.lab import capacity, fleet, identities
from tests.lab.lab import Lab
from tests.lab.places import REPOSITORY
from tests.stages.opening import open_nodes, running

SCHEMA = json.loads((REPOSITORY / "schemas" / "plan.json").read_text())
POOL = {
    "mode": "Enforce",
    "devices": {"model": "a100", "count": 8, "memory": "40Gi"},
    "instanceTypes": [{"name": "p4d.24xlarge", "pricePerHour": {"on-demand": "21.96"}}],
    "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": capacity.NODE_CLASS},
    "requirements": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": list(capacity.ZONES)}],
}


class Team:
    """People who write policies, and look at what they would do."""

    def __init__(self, lab: Lab, folder: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.lab, self.folder, self.capture = lab, folder, capture

    def write(self, name: str = "a100", **fields: Any) -> None:
        policy = {
            "apiVersion": "gpu.scheduling/v1",
            "kind": "GpuPool",
            "metadata": {"name": name},
            "spec": {**POOL, **fields},
        }
        (self.folder / f"{name}.yaml").write_text(yaml.safe_dump(policy))

    def run(self, *arguments: str) -> tuple[int, str]:
        code = main([*arguments, "--policies", str(self.folder)])
        return code, self.capture.readouterr().out

    def plan(self) -> dict[str, Any]:
        code, printed = self.run("plan", "-o", "json")
        assert code == 0, printed
        found: dict[str, Any] = json.loads(printed)
        jsonschema.validate(found, SCHEMA)
        return found

    def apply(self) -> None:
        """What the plan asks for, done by somebody who may; the dry run itself never does."""
        for decision in self.plan()["decisions"]:
            action = decision["action"]
            if action and action["verb"] == "apply":
                self.lab.admin.apply(json.loads(action["manifest"]), owner=names.FIELD_MANAGER)


@pytest.fixture
def team(
    cluster: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Team]:
    cluster.start("scheduler", "kwok", "karpenter")
    reader = identities.reconciler(cluster.admin)
    monkeypatch.setenv("KUBECONFIG", str(cluster.site.kubeconfig("reader", reader)))
    audit = cluster.audit()
    policies = tmp_path / "policies"
    policies.mkdir()
    yield Team(cluster, policies, capsys)
    assert audit.writes(identities.RECONCILER) == []


def buy(lab: Lab, count: int) -> list[str]:
    """That many nodes, each by a pod of its own, which Karpenter has done with; their names by zone."""
    for number in range(count):
        zone = capacity.ZONES[number % len(capacity.ZONES)]
        pod = fleet.Pod(f"train-{number}", gpus=8).with_spec(nodeSelector={"topology.kubernetes.io/zone": zone})
        lab.admin.create(pod.manifest())
    found = [running(lab.admin, f"train-{number}")["spec"]["nodeName"] for number in range(count)]
    are_settled(lab)
    return found


def are_settled(lab: Lab) -> None:
    """Waits until no machine is on its way any more: pods may run on it already."""
    for claim in lab.admin.list("nodeclaims"):
        lab.admin.wait_for("nodeclaims", claim["metadata"]["name"], fleet.is_initialized)


def wait_for_a_verdict(lab: Lab, node: str) -> None:
    """Until Karpenter says why it can't place what runs there. Of a node of which it said something else it keeps
    silent for two minutes, unless it was started anew."""
    lab.start_karpenter()
    deadline = time.monotonic() + 60
    while not any(
        event["regarding"].get("name") == node and "did not tolerate taint" in event["note"]
        for event in lab.admin.list("events", "default")
    ):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_pool_from_its_first_plan_to_its_edits(team: Team) -> None:
    team.write()
    new, shared = team.plan()["decisions"]
    assert (new["subject"]["kind"], new["subject"]["name"], new["action"]["verb"]) == ("NodePool", "a100", "apply")
    assert (shared["subject"]["kind"], shared["action"]["verb"]) == ("PriorityClass", "apply")
    team.apply()
    assert team.plan()["decisions"] == []
    nodes = buy(team.lab, 3)

    team.write(limits={"nodes": 8})
    limits = team.plan()
    assert [each["reason"] for each in limits["decisions"]] == ["EditedInPlace"]
    assert limits["consequences"] == []

    team.write(taints=[{"key": "dedicated", "value": "training", "effect": "NoSchedule"}])
    (drifted,) = team.plan()["consequences"]
    assert drifted["fate"] == "blocked"
    assert sorted(drifted["nodes"]) == sorted(nodes)
    assert drifted["gpus_in_use"] == 24
    code, printed = team.run("plan")
    assert code == 0
    assert "all 3 nodes drift" in printed

    kept = list(capacity.ZONES[:2])
    team.write(requirements=[{"key": "topology.kubernetes.io/zone", "operator": "In", "values": kept}])
    (some,) = team.plan()["consequences"]
    assert some["nodes"] == [nodes[2]]


@pytest.mark.long
def test_karpenter_leaves_a_node_whose_pod_would_fit_nowhere_and_replaces_the_others(team: Team) -> None:
    team.write()
    team.apply()
    admin, keys = team.lab.admin, ("dedicated", "other")
    for key in keys:
        pod = fleet.Pod(f"tolerates-{key}", gpus=8).with_spec(tolerations=[{"key": key, "operator": "Exists"}])
        admin.create(pod.manifest())
    on = {key: running(admin, f"tolerates-{key}")["spec"]["nodeName"] for key in keys}
    are_settled(team.lab)
    team.write(taints=[{"key": "dedicated", "value": "training", "effect": "NoSchedule"}])
    told = team.plan()["consequences"]
    assert {each["fate"]: each["nodes"] for each in told} == {"replaced": [on["dedicated"]], "blocked": [on["other"]]}
    (homeless,) = [each["homeless"] for each in told if each["homeless"]]
    assert homeless == [
        {
            "owner": "default/tolerates-other",
            "why": "the pod does not tolerate the taint dedicated=training:NoSchedule",
            "pods": 1,
        }
    ]
    team.apply()
    deadline = time.monotonic() + 60
    while admin.get("nodes", on["dedicated"]) is not None:
        assert time.monotonic() < deadline
        open_nodes(admin)  # what comes in its place has to be ready first
        time.sleep(0.1)
    wait_for_a_verdict(team.lab, on["other"])
    left = admin.get("nodes", on["other"])
    assert left
    assert names.DISRUPTED not in str(left["spec"])


def test_what_may_not_be_read_is_never_taken_for_empty(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    team.write()
    team.apply()
    (team.folder / "a100.yaml").unlink()
    tenant = team.lab.site.kubeconfig("tenant", identities.tenant(team.lab.admin))
    monkeypatch.setenv("KUBECONFIG", str(tenant))
    team.write("other")
    for held in team.plan()["decisions"]:
        assert held["action"] is None
        assert "may not list" in held["sentence"]


def test_a_pool_in_observe_mode_is_told_as_what_would_happen(team: Team) -> None:
    team.write(mode="Observe")
    (new,) = team.plan()["decisions"]
    assert new["would"] is True
    assert "would" in team.run("plan")[1]


def test_the_other_commands_answer_from_the_live_cluster(team: Team, tmp_path: Path) -> None:
    team.write()
    team.apply()
    (node,) = buy(team.lab, 1)
    code, told = team.run("explain", f"node/{node}")
    assert code == 0
    assert "8 of 8 GPUs in use" in told
    code, told = team.run("status")
    assert code == 0
    assert "a100" in told
    code, dumped = team.run("dump")
    assert code == 0
    assert node in dumped
    file = tmp_path / "cluster.json"
    file.write_text(dumped)
    assert json.loads(team.run("plan", "--cluster", str(file), "-o", "json")[1])["decisions"] == []


def test_the_line_of_dump_gives_a_complete_plan(team: Team, tmp_path: Path) -> None:
    """kubectl refuses a list with a kind that the server does not serve, and this one serves no EC2NodeClasses."""
    team.write()
    _, line = team.run("dump", "--kubectl")
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(f'#!/bin/sh\nexec "{team.lab.site.built.binary("kube")}" kubectl "$@"\n')
    kubectl.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-c", line], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "could not be read" not in done.stdout
    assert "NodePool/a100" in done.stdout
