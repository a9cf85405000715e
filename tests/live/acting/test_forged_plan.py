"""A saved plan that was forged, applied to a real API server with all rights: nothing beyond the review is written."""

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest

from reconciler.cli.main import main
from reconciler.kube.api_server import APPLY_PATCH, ApiRequest, BadPath
from reconciler.kube.client import connect
from reconciler.plan.files import saved_plan
from tests.lab.lab import Lab
from tests.stages.controlled import Site

ESCAPE = "../../../../../apis/rbac.authorization.k8s.io/v1/clusterrolebindings/forged"
BINDING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "forged"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "attacker"}],
}
Plan = dict[str, Any]


@pytest.fixture
def plan(cluster: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An honest plan for two pools, saved by a runner that may do everything."""
    site = Site(cluster, tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(cluster.site.kubeconfig("runner", cluster.admin)))
    site.write()
    file = tmp_path / "plan.json"
    assert main(["plan", "--policies", str(site.policies), "--out", str(file)]) == 0
    return file


def binding_in_the_manifest(found: Plan) -> None:
    """The step is what a plan makes of the forged manifest: the same labels and annotations are added."""
    manifest, step = found["desired"]["manifests"][0], found["steps"][0]["decision"]
    added = json.loads(step["act"]["manifest"])["metadata"]
    metadata = {"name": "forged", **{key: added[key] for key in ("labels", "annotations") if key in added}}
    manifest |= {"name": ESCAPE, "body": json.dumps(BINDING)}
    step["subject"]["name"] = ESCAPE
    step["act"]["manifest"] = msgspec.json.encode({**BINDING, "metadata": metadata}, order="sorted").decode()


def binding_by_its_kind(found: Plan) -> None:
    body = json.dumps(BINDING, sort_keys=True, separators=(",", ":"))
    found["desired"]["manifests"][0] |= {"kind": "ClusterRoleBinding", "name": "forged", "body": body}
    found["steps"][0]["decision"]["subject"] |= {"kind": "ClusterRoleBinding", "name": "forged"}
    found["steps"][0]["decision"]["act"]["manifest"] = body


def more_in_a_manifest(found: Plan) -> None:
    """Of the right kind and name, with a class of machines that nobody reviewed."""
    manifest = next(each for each in found["desired"]["manifests"] if each["kind"] == "NodePool")
    body = json.loads(manifest["body"])
    body["spec"]["template"]["spec"]["nodeClassRef"]["name"] = "forged"
    manifest["body"] = json.dumps(body, sort_keys=True, separators=(",", ":"))


def an_endless_validity(found: Plan) -> None:
    found["expires_at"] += 10**12


FORGERIES = (binding_in_the_manifest, binding_by_its_kind, more_in_a_manifest, an_endless_validity)


def forge(file: Path, change: Callable[[Plan], None]) -> str:
    """Rewrites the file, with a digest that fits; the digest."""
    found = json.loads(file.read_bytes())
    change(found["plan"])
    content = msgspec.json.encode(found["plan"], order="sorted")
    digest = f"sha256:{sha256(content).hexdigest()}"
    file.write_bytes(msgspec.json.encode({"format": saved_plan.FORMAT, "digest": digest, "plan": msgspec.Raw(content)}))
    return digest


@pytest.mark.parametrize("change", FORGERIES)
def test_a_forged_plan_is_not_the_one_that_was_reviewed(
    cluster: Lab, plan: Path, capsys: pytest.CaptureFixture[str], change: Callable[[Plan], None]
) -> None:
    reviewed = saved_plan.digest_of_saved(saved_plan.read(plan.read_bytes()))
    forge(plan, change)
    assert main(["apply", str(plan), "--digest", reviewed]) == 1
    told = capsys.readouterr().err
    assert "remedy: " in told
    assert not _forged(cluster)
    assert cluster.admin.get("nodepools", "a100") is None


@pytest.mark.parametrize("change", [binding_in_the_manifest, binding_by_its_kind])
def test_even_where_somebody_agreed_to_it_no_template_could_yield_what_it_holds(
    cluster: Lab, plan: Path, capsys: pytest.CaptureFixture[str], change: Callable[[Plan], None]
) -> None:
    assert main(["apply", str(plan), "--digest", forge(plan, change)]) == 1
    assert "invalid plan" in capsys.readouterr().err
    assert not _forged(cluster)


def test_without_a_terminal_somebody_must_have_reviewed_it(cluster: Lab, plan: Path) -> None:
    assert main(["apply", str(plan)]) == 64
    assert main(["apply", str(plan), "--yes"]) == 64
    assert cluster.admin.get("nodepools", "a100") is None


def test_no_request_leaves_for_a_path_that_leads_elsewhere(cluster: Lab, plan: Path) -> None:
    client = connect()
    path = f"/apis/karpenter.sh/v1/nodepools/{ESCAPE}"
    request = ApiRequest("PATCH", path, json.dumps(BINDING).encode(), APPLY_PATCH, {"fieldManager": "x"})
    try:
        with pytest.raises(BadPath):
            client.send(request)
    finally:
        client.close()
    assert not _forged(cluster)


def _forged(cluster: Lab) -> bool:
    return cluster.admin.get("clusterrolebindings", "forged") is not None
