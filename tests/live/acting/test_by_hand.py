"""`freeze` and `approve` on a real API server, by people with exactly the rights that `rbac --person` prints."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from reconciler.cli.main import main
from reconciler.controller.cluster import current_instant
from reconciler.controller.policies import Origins, check
from reconciler.kube.client import connect
from reconciler.kube.observe import observe_once
from reconciler.model import names
from reconciler.model.cluster.observed import Observed
from reconciler.model.desired import Desired
from reconciler.model.instant import instant
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.guards.approvals import Approval, Approvals
from reconciler.policy.rules.kinds import GPU_POOL
from reconciler.policy.shape import API_VERSION
from tests.lab import capacity, fleet
from tests.lab.lab import Lab
from tests.policies import specimens
from tests.stages.controlled import Site
from tests.stages.definitions import defined
from tests.stages.people import acting_as

GUARD = """
apiVersion: gpu.scheduling/v1
kind: ChangeGuard
metadata: {name: fleet}
spec: {poolNames: ["*"], perPlan: {maxRemovedNodes: 1, maxDeletedNodePools: 0}}
"""
COMMIT = "4c1f9e2b7d0a155f1e2d3c4b5a69788796a5b4c3"


@pytest.fixture
def freezer(cluster: Lab, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    with acting_as(cluster, "freezer") as kubeconfig:
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
        yield cluster


def frozen(lab: Lab, plural: str, name: str) -> tuple[str, str]:
    found = lab.admin.get(plural, name)
    assert found
    annotations = found["metadata"].get("annotations", {})
    return annotations.get(names.FROZEN_UNTIL, ""), annotations.get(names.FROZEN_REASON, "")


def test_a_node_is_frozen_for_a_while_and_thawed(freezer: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    freezer.admin.create(fleet.Shape(capacity.P4D, "a100").node("n1", "eu-1a"))
    assert main(["freeze", "node/n1", "--for", "4h", "--reason", "an audit"]) == 0
    until, reason = frozen(freezer, "nodes", "n1")
    assert until in capsys.readouterr().out
    assert abs(instant(until) - current_instant() - 4 * 3_600_000) < 60_000
    assert reason == "an audit"
    (node,) = observe_once(connect(None)).nodes
    assert (node.metadata.annotations.frozen_until, node.metadata.annotations.frozen_reason) == (until, reason)
    assert main(["freeze", "node/n1", "--lift"]) == 0
    assert frozen(freezer, "nodes", "n1") == ("", "")


def test_everything_is_frozen_on_our_namespace(freezer: Lab) -> None:
    assert main(["freeze", "all", "--for", "30m"]) == 0
    assert frozen(freezer, "namespaces", names.OWN_NAMESPACE)[0]
    assert main(["freeze", "all", "--lift"]) == 0
    assert frozen(freezer, "namespaces", names.OWN_NAMESPACE) == ("", "")


def test_what_is_not_there_is_told(freezer: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["freeze", "pool/a100", "--for", "1h"]) == 1
    assert "there is no GpuPool/a100 and no NodePool/a100 in this cluster" in capsys.readouterr().err


def test_a_pool_is_frozen_on_its_node_pool_or_its_policy(cluster: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.admin.apply(capacity.node_class())
    cluster.admin.apply(capacity.NodePool("a100", [capacity.P4D]).manifest())
    with defined(cluster), acting_as(cluster, "freezer") as kubeconfig:
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
        assert main(["freeze", "pool/a100", "--for", "1h"]) == 0
        assert frozen(cluster, "nodepools", "a100")[0]
        assert frozen_pools(cluster) == 0
        spec = specimens.smallest(GPU_POOL.shape)
        cluster.admin.apply({"apiVersion": API_VERSION, "kind": "GpuPool", "metadata": {"name": "a100"}, "spec": spec})
        assert main(["freeze", "pool/a100", "--for", "1h"]) == 0
        assert frozen_pools(cluster) == 1
        assert main(["freeze", "pool/a100", "--lift"]) == 0
        assert frozen(cluster, "nodepools", "a100") == ("", "")
        assert frozen_pools(cluster) == 0


def test_an_approval_is_made_and_read_again(
    cluster: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["approve", COMMIT, "--guard", "fleet", "--removed-nodes", "40", "--expires", "2h"]
    with acting_as(cluster, "approver") as kubeconfig:
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
        assert main(arguments) == 1
        assert "this cluster has no CRD for ChangeApproval" in capsys.readouterr().err
    with defined(cluster):
        with acting_as(cluster, "approver") as kubeconfig:
            monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
            assert main(arguments) == 0
            assert "within 40 removed nodes" in capsys.readouterr().out
            observed = observe_once(connect(None))
            (approval,) = approved(COMMIT, observed)
            assert approval.spec.ceilings.max_removed_nodes == 40
            assert approved(COMMIT[:-1] + "0", observed) == ()
        with acting_as(cluster, "freezer") as kubeconfig:
            monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
            assert main(arguments) == 1
            assert "`reconciler rbac --person approver` prints the required rights" in capsys.readouterr().err


def approved(revision: str, observed: Observed) -> tuple[Approval, ...]:
    return Approvals(Inputs(Desired(revision, "prod"), observed, current_instant())).for_guard("fleet")


def frozen_pools(lab: Lab) -> int:
    found = lab.admin.must("GET", "/apis/gpu.scheduling/v1/gpupools")["items"]
    return sum(names.FROZEN_UNTIL in each["metadata"].get("annotations", {}) for each in found)


def test_a_loss_that_an_approver_agrees_to_is_carried_out_by_the_controller(
    cluster: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    site = Site(cluster, tmp_path)
    with defined(cluster), contextlib.ExitStack() as last:
        last.callback(site.clean)
        site.write("a100")
        site.write("old")
        site.put("guard.yaml", GUARD)
        with site.replica() as replica:
            cluster.admin.wait_for("nodepools", "old", bool)
            (site.policies / "old.yaml").unlink()
            told = replica.wait_for(lambda line: line.get("reason") == "NodePoolNotDeclared")
            assert "reconciler approve --prune NodePool/old" in told["message"]
            with acting_as(cluster, "approver") as kubeconfig:
                monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
                arguments = ["--prune", "NodePool/old", "--guard", "fleet", "--deleted-node-pools", "1"]
                assert main(["approve", *arguments, "--expires", "1h"]) == 0
            assert "and may pass guard fleet, within 1 deleted NodePools" in capsys.readouterr().out
            cluster.admin.wait_for("nodepools", "old", lambda found: found is None)
            assert cluster.admin.get("nodepools", "a100")
            line = replica.wait_for(lambda line: line["event"] == "written" and line["action"] == "delete")
            assert (line["subject"], line["result"]) == ("NodePool/old", "done")


def test_an_approval_of_objects_is_found_again_in_the_cluster(
    cluster: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    site = Site(cluster, tmp_path)
    site.write("a100")
    site.put("guard.yaml", GUARD)
    monkeypatch.chdir(tmp_path)
    with defined(cluster), acting_as(cluster, "approver") as kubeconfig:
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
        assert main(["approve", "GpuPool/a100", "--guard", "fleet", "--removed-nodes", "4"]) == 0
        assert "changes that GpuPool/a100 (sha256:" in capsys.readouterr().out
        desired = check(Origins((Path("policies"),))).resolved.wishes[0]
        inputs = Inputs(desired, observe_once(connect(None)), current_instant())
        (approval,) = Approvals(inputs).for_guard("fleet")
        assert approval.policies == {("GpuPool", "a100")}
        edited = msgspec.structs.replace(inputs, desired=msgspec.structs.replace(desired, manifests=()))
        (approval,) = Approvals(edited).for_guard("fleet")
        assert approval.policies == set()
    site.clean()
