"""The rights that `reconciler rbac` prints are enough on a real API server, and no more than enough."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.model.cluster.kinds import RESOURCE_KINDS, ResourceKind
from tests.lab import capacity, fleet
from tests.lab.api import Api, Manifest
from tests.lab.identities import NAMESPACE
from tests.lab.lab import Lab
from tests.stages.granted import HOME, MERGE, Rights, account, page_of, path_of, until, until_allowed

POOL = """\
apiVersion: gpu.scheduling/v1
kind: GpuPool
metadata: {name: a100}
spec:
  mode: Enforce
  adopt: true
  devices: {model: a100, count: 8, memory: 40Gi}
  instanceTypes: [{name: p4d.24xlarge}]
  nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: lab}
"""
APPLY = "application/apply-patch+yaml"


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    (tmp_path / "pool.yaml").write_text(POOL)
    return tmp_path


@pytest.fixture
def looking(cluster: Lab, policies: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Api]:
    """Somebody with the rights to look that these policies need."""
    rights = Rights(cluster.admin, page_of(policies, capsys))
    try:
        yield account(cluster.admin, path_of(cluster.admin, "leases", HOME))
    finally:
        rights.take_back()


@pytest.fixture
def writing(cluster: Lab, looking: Api, policies: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Api]:
    """The same, who may also write."""
    rights = Rights(cluster.admin, page_of(policies, capsys, "--write"))
    try:
        until_allowed(looking, "PATCH", "/api/v1/nodes/none", {}, MERGE)
        yield looking
    finally:
        rights.take_back()


def home_of(admin: Api, seen: ResourceKind, namespace: str = HOME) -> str:
    """Where a kind is listed; of a kind that the lab does not serve, where it would be."""
    where = seen.namespace_for(namespace)
    folder = f"/namespaces/{where}" if where else ""
    root = f"/apis/{seen.group}" if seen.group else "/api"
    version = seen.version or "v1"
    if seen.group and not seen.version:
        version = admin.request("GET", root).body.get("preferredVersion", {}).get("version", "v1")
    return f"{root}/{version}{folder}/{seen.plural}"


def test_every_kind_can_be_listed_but_the_node_classes_of_other_clouds(cluster: Lab, looking: Api) -> None:
    codes = {
        (seen.kind, seen.title): looking.request("GET", home_of(cluster.admin, seen)).code for seen in RESOURCE_KINDS
    }
    refused = {kind for (kind, _), code in codes.items() if code == 403}
    assert refused == {"EC2NodeClass"}
    listed = {kind for (kind, _), code in codes.items() if code == 200}
    assert {"Node", "Pod", "PodDisruptionBudget", "NodePool", "NodeClaim", "KWOKNodeClass", "Lease"} <= listed
    # Others are allowed too, and not there: our own kinds, which the lab was not given.
    assert set(codes.values()) <= {200, 403, 404}


def test_each_right_that_is_left_out_makes_a_list_fail(cluster: Lab, looking: Api) -> None:
    role = cluster.admin.get("clusterroles", "tried-observe")
    assert role
    whole = {each: role[each] for each in ("apiVersion", "kind", "rules")} | {"metadata": {"name": "tried-observe"}}
    paths = {(seen.group, seen.plural): home_of(cluster.admin, seen) for seen in RESOURCE_KINDS}
    tried = 0
    for number, rule in enumerate(whole["rules"]):
        for resource in rule["resources"] if "list" in rule["verbs"] else ():
            left = {**rule, "resources": [each for each in rule["resources"] if each != resource]}
            rules = [left if each == number else rule for each, rule in enumerate(whole["rules"])]
            cluster.admin.apply({**whole, "rules": [each for each in rules if each["resources"]]})
            path = paths[rule["apiGroups"][0], resource]
            until(lambda path=path: looking.request("GET", path).code == 403, path)  # type: ignore[misc]
            tried += 1
    assert tried == len(set(paths.values())) - 2, "all but leases, which a Role grants, and EC2NodeClasses"


def test_the_cluster_can_be_told_by_kube_system_and_of_a_namespace_nothing_is_seen_but_itself(looking: Api) -> None:
    assert looking.must("GET", "/api/v1/namespaces/kube-system")["metadata"]["uid"]
    assert looking.request("GET", "/api/v1/namespaces").code == 200
    assert looking.request("GET", "/api/v1/namespaces/default/secrets").code == 403
    assert looking.request("GET", "/api/v1/namespaces/default/configmaps").code == 403


def test_leases_are_seen_at_home_only(cluster: Lab, looking: Api) -> None:
    for namespace in ("kube-node-lease", NAMESPACE):
        assert looking.request("GET", path_of(cluster.admin, "leases", namespace)).code == 403
    assert looking.request("GET", "/apis/coordination.k8s.io/v1/leases").code == 403


def node_pool() -> Manifest:
    return capacity.NodePool("a100", [capacity.P4D]).manifest()


def test_whoever_only_looks_is_refused_each_write(cluster: Lab, looking: Api) -> None:
    cluster.load([*fleet.nodes(1), fleet.Pod("train").manifest()])
    audit = cluster.audit()
    pools = path_of(cluster.admin, "nodepools")
    writes = [
        ("PATCH", "/api/v1/nodes/gpu-0", {"metadata": {"labels": {"a": "b"}}}, MERGE),
        ("DELETE", "/api/v1/nodes/gpu-0", None, MERGE),
        ("PATCH", f"{pools}/a100?fieldManager=x", node_pool(), APPLY),
        ("POST", pools, node_pool(), "application/json"),
        ("DELETE", "/api/v1/namespaces/default/pods/train", None, MERGE),
        ("POST", f"/api/v1/namespaces/{HOME}/pods", fleet.Pod("more", HOME).manifest(), "application/json"),
    ]
    assert [looking.request(*each).code for each in writes] == [403] * len(writes)
    assert {write.code for write in audit.writes(f"system:serviceaccount:{HOME}:reconciler")} == {403}


def test_whoever_writes_can_keep_node_pools_and_label_nodes_and_nothing_else(cluster: Lab, writing: Api) -> None:
    cluster.load([*fleet.nodes(1), fleet.Pod("train").manifest()])
    pools = path_of(cluster.admin, "nodepools")
    applied = f"{pools}/a100?fieldManager=reconciler"
    until_allowed(writing, "PATCH", applied, node_pool(), APPLY)
    changed = node_pool()
    changed["spec"]["limits"] = {"nodes": "4"}
    assert writing.must("PATCH", applied, changed, APPLY)["spec"]["limits"] == {"nodes": "4"}
    writing.delete("nodepools", "a100")
    writing.merge("/api/v1/nodes/gpu-0", {"metadata": {"labels": {"gpu.scheduling/managed": "true"}}})
    assert writing.request("DELETE", "/api/v1/nodes/gpu-0").code == 403
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "train", "namespace": "default"}}
    assert writing.request("POST", "/api/v1/namespaces/default/pods/train/eviction", eviction).code == 403
    assert writing.request("POST", "/api/v1/namespaces/default/pods", fleet.Pod("more").manifest()).code == 403
