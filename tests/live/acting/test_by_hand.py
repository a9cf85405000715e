"""`freeze` and `approve` on a real API server, by people with exactly the rights that `rbac --person` prints."""

from collections.abc import Iterator

import pytest

from reconciler.cli.main import main
from reconciler.kube.client import connect
from reconciler.kube.observe import observe_once
from reconciler.model import names
from reconciler.model.cluster.observed import Observed
from reconciler.model.desired import Desired
from reconciler.model.instant import instant
from reconciler.model.planned.inputs import Inputs
from reconciler.plan.guards.approvals import Approval, Approvals
from reconciler.policy.kind import API_VERSION
from reconciler.policy.kinds.gpu_pool import GPU_POOL
from reconciler.wiring import current_instant
from tests.lab import capacity, fleet
from tests.lab.lab import Lab
from tests.policies import specimens
from tests.stages.definitions import defined
from tests.stages.people import acting_as

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
        assert "this cluster has no definition of ChangeApproval" in capsys.readouterr().err
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
            assert "`reconciler rbac --person approver` prints the rights that it takes" in capsys.readouterr().err


def approved(revision: str, observed: Observed) -> tuple[Approval, ...]:
    return Approvals(Inputs(Desired(revision, "prod"), observed, current_instant())).for_guard("fleet")


def frozen_pools(lab: Lab) -> int:
    found = lab.admin.must("GET", "/apis/gpu.scheduling/v1/gpupools")["items"]
    return sum(names.FROZEN_UNTIL in each["metadata"].get("annotations", {}) for each in found)
