"""`reconciler release` on a real cluster, with the rights that it says it needs: what we put on is off, no more."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.cli.main import main
from tests.lab import capacity, fleet
from tests.lab.api import Api, Manifest
from tests.lab.lab import Lab
from tests.stages.controlled import Site
from tests.stages.granted import HOME, Rights, account, bound, path_of

OURS = [
    {"key": "gpu.scheduling/deletion-time", "value": "1795013520", "effect": "PreferNoSchedule"},
    {"key": "gpu.scheduling/draining", "effect": "NoSchedule"},
]
THEIRS = {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}
MARKS = {
    "labels": {"gpu.scheduling/provisioner": "a100"},
    "annotations": {"gpu.scheduling/frozen-until": "2030-01-01T00:00:00Z"},
}
# What nobody means by what a cluster is.
PASSING = ("resourceVersion", "generation", "managedFields")


@pytest.fixture
def site(cluster: Lab, tmp_path: Path) -> Iterator[Site]:
    made = Site(cluster, tmp_path)
    yield made
    made.clean()


@pytest.fixture
def releaser(cluster: Lab, capsys: pytest.CaptureFixture[str]) -> Iterator[Api]:
    """Somebody with exactly what `rbac --person releaser` prints."""
    assert main(["rbac", "--person", "releaser", "--namespace", HOME]) == 0
    page = capsys.readouterr().out
    assert main(["rbac", "--namespace", HOME]) == 0
    held = Rights(cluster.admin, capsys.readouterr().out.split("---\n")[0])  # the account alone
    rights = Rights(cluster.admin, page)
    try:
        with bound(cluster.admin, rights):
            yield account(cluster.admin, path_of(cluster.admin, "leases", HOME))
    finally:
        rights.take_back()
        held.take_back()


def said(admin: Api, plural: str, name: str, namespace: str = "") -> dict[str, Any] | None:
    found = admin.get(plural, name, namespace)
    if found:
        for key in PASSING:
            found["metadata"].pop(key, None)
    if found and plural == "nodes":  # no kubelet reports them, and what controllers make of that comes and goes
        found.pop("status", None)
        taints = found["spec"].pop("taints", [])
        found["spec"]["taints"] = [each for each in taints if not each["key"].startswith("node.kubernetes.io/")]
    return found


def is_touched(node: Manifest | None) -> bool:
    """By those controllers that put something on each node."""
    metadata = (node or {})["metadata"]
    return "node.alpha.kubernetes.io/ttl" in metadata["annotations"] and "beta.kubernetes.io/os" in metadata["labels"]


def gated(name: str) -> Manifest:
    gates = [{"name": "gpu.scheduling/claim"}, {"name": "example.com/queue"}]
    return fleet.Pod(name).with_spec(schedulingGates=gates).manifest()


def budget() -> Manifest:
    labels = {"gpu.scheduling/managed": "true", "gpu.scheduling/pool": "a100"}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "ours", "namespace": "default", "labels": labels},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}},
    }


def run(site: Site, who: Api, *arguments: str) -> int:
    kubeconfig = site.lab.site.kubeconfig("releaser", who)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", str(kubeconfig))
        return main(["release", "--namespace", HOME, *arguments])


def test_what_we_put_on_is_off_and_all_else_as_it_was(
    site: Site, releaser: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    admin = site.lab.admin
    admin.create(capacity.NodePool("a100", [capacity.P4D], labels={"gpu.scheduling/managed": "true"}).manifest())
    for each in fleet.nodes(2, fleet.Shape(capacity.P4D, "a100", labels={"gpu.scheduling/managed": "true"})):
        admin.create(each)
    admin.create(gated("waits"))
    path = admin.path("nodes", "gpu-0")
    admin.merge(path, {"spec": {"taints": [THEIRS]}, "metadata": {"labels": {"theirs": "1"}}})
    for name in ("gpu-0", "gpu-1"):  # controllers put theirs on it, too
        admin.wait_for("nodes", name, is_touched)
    before = [said(admin, "nodes", name) for name in ("gpu-0", "gpu-1")] + [said(admin, "nodepools", "a100")]
    admin.merge(path, {"spec": {"taints": [THEIRS, *OURS]}, "metadata": MARKS})
    admin.create(budget())
    assert run(site, releaser) == 0
    told = capsys.readouterr().out
    assert "3 objects to release: add --yes to release them" in told
    assert said(admin, "nodes", "gpu-0") != before[0]
    assert run(site, releaser, "--yes") == 0, capsys.readouterr().out
    after = [said(admin, "nodes", name) for name in ("gpu-0", "gpu-1")] + [said(admin, "nodepools", "a100")]
    assert after == before
    assert admin.get("poddisruptionbudgets", "ours", "default") is None
    pod = admin.get("pods", "waits", "default")
    assert pod
    assert pod["spec"]["schedulingGates"] == [{"name": "example.com/queue"}]
    assert run(site, releaser, "--yes") == 0
    assert "Nothing of reconciler is left to release." in capsys.readouterr().out


def test_beside_a_controller_only_one_pool_is_released(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.write(mode="Observe")
    admin = site.lab.admin
    for each in fleet.nodes(1, fleet.Shape(capacity.P4D, "a100")):
        admin.create(each)
    admin.merge(admin.path("nodes", "gpu-0"), {"spec": {"taints": [THEIRS, *OURS]}})
    with site.replica() as replica, pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", str(site.kubeconfig))
        replica.wait_until_leading()
        assert main(["release", "--yes"]) == 1
        assert "a controller runs here" in capsys.readouterr().err
        assert main(["release", "--yes", "--pool", "a100"]) == 0
        node = admin.get("nodes", "gpu-0")
        assert node
        assert [each for each in node["spec"]["taints"] if "node.kubernetes.io" not in each["key"]] == [THEIRS]
        assert replica.terminate()[0] == 0
