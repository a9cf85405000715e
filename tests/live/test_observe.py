"""What the reconciler sees of a real cluster, with nothing but the rights that it ships."""

import threading
from collections.abc import Iterator

import pytest
import yaml

from reconciler.kube.client import Client, connect
from reconciler.kube.observe import observe_once
from reconciler.kube.watch import reflector
from reconciler.kube.watch.reflector import ReflectorTiming
from reconciler.model.cluster.kinds import RESOURCE_KINDS
from reconciler.model.cluster.observed import Observed
from reconciler.policy.rules.kinds import GPU_POOL
from tests.lab import capacity, fleet, identities
from tests.lab.api import Manifest
from tests.lab.lab import Lab
from tests.lab.places import REPOSITORY
from tests.policies import specimens
from tests.stages import volumes
from tests.stages.observing import Watched, client_of

OUR_DEFINITION = "gpupools.gpu.scheduling"
GPU_POOLS = f"/apis/gpu.scheduling/v1/{OUR_DEFINITION.partition('.')[0]}"
QUICK = ReflectorTiming(absent_seconds=0.2)


@pytest.fixture
def client(cluster: Lab) -> Iterator[Client]:
    made = client_of(cluster)
    yield made
    made.close()


def one_of_each() -> list[Manifest]:
    """An object of each kind that the bare lab serves, and that some field of an Observed is for."""
    template = {"metadata": {"labels": {"app": "a"}}, "spec": fleet.Pod("p").manifest()["spec"]}
    job = {"template": {**template, "spec": {**template["spec"], "restartPolicy": "Never"}}}
    selected = {"selector": {"matchLabels": {"app": "a"}}, "template": template}
    kept = {"gpu.scheduling/managed": "true"}

    def made(kind: str, version: str, spec: Manifest, labels: Manifest | None = None, **more: object) -> Manifest:
        metadata = {"name": "a", "namespace": "default", "labels": labels or {}}
        return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec, **more}

    lease = made("Lease", "coordination.k8s.io/v1", {"holderIdentity": "x"})
    lease["metadata"]["namespace"] = identities.NAMESPACE
    priority = made("PriorityClass", "scheduling.k8s.io/v1", {}, kept, value=7)
    del priority["spec"], priority["metadata"]["namespace"]
    device = {
        "driver": "a.example.com",
        "pool": {"name": "a", "generation": 1, "resourceSliceCount": 1},
        "allNodes": True,
    }
    request = {"name": "a", "exactly": {"deviceClassName": "a.example.com"}}
    return [
        *fleet.nodes(2),
        fleet.Pod("a", labels=kept).unseen().manifest(),
        made("PodDisruptionBudget", "policy/v1", {"minAvailable": 1, "selector": {}}, kept),
        made("ReplicaSet", "apps/v1", {**selected, "replicas": 0}),
        made("StatefulSet", "apps/v1", {**selected, "serviceName": "a", "replicas": 0}),
        made("DaemonSet", "apps/v1", selected),
        made("Deployment", "apps/v1", {**selected, "replicas": 0}),
        made("Job", "batch/v1", {**job, "suspend": True}),
        made("ReplicationController", "v1", {"replicas": 0, "selector": {"app": "a"}, "template": template}),
        capacity.NodePool("a", [capacity.P4D]).manifest(),
        capacity.node_class(),
        made("ResourceClaim", "resource.k8s.io/v1", {"devices": {"requests": [request]}}),
        made("ResourceSlice", "resource.k8s.io/v1", device),
        made("DeviceClass", "resource.k8s.io/v1", {"extendedResourceName": "a.example.com/gpu"}),
        *volumes.one_of_each(),
        lease,
        priority,
    ]


FIELDS = {
    "nodes": {"gpu-0", "gpu-1"},
    "pods": {"a"},
    "budgets": {"a"},
    "workloads": {"a"},
    "node_pools": {"a"},
    "node_classes": {capacity.node_class()["metadata"]["name"]},
    "resource_claims": {"a"},
    "resource_slices": {"a"},
    "device_classes": {"a"},
    "volume_claims": {"a"},
    "volumes": {"a"},
    "storage_classes": {"a"},
    "csi_nodes": {"gpu-0"},
    "csi_drivers": {"a.example.com"},
    "attachments": {"a"},
    "namespaces": {"default", "kube-system"},
    "leases": {"a"},
    "kept": {"a"},
}
WORKLOADS = {"ReplicaSet", "StatefulSet", "DaemonSet", "Deployment", "Job", "ReplicationController"}


def names(seen: Observed) -> dict[str, set[str]]:
    return {field: {each.metadata.name for each in getattr(seen, field)} for field in FIELDS}


def is_complete(seen: Observed) -> bool:
    made = {each.kind for each in seen.workloads if each.metadata.name == "a"}
    # Controllers keep a lease or two here, and make objects out of others.
    return all(wanted <= names(seen)[field] for field, wanted in FIELDS.items()) and made == WORKLOADS


@pytest.fixture
def filled(cluster: Lab) -> Iterator[Lab]:
    for manifest in one_of_each():
        cluster.admin.apply(manifest)
    yield cluster
    cluster.admin.delete("leases", "a", identities.NAMESPACE)


def test_once_sees_objects_of_every_kind(filled: Lab) -> None:
    seen = observe_once(client_of(filled))
    assert is_complete(seen), names(seen)
    kube_system = filled.admin.get("namespaces", "kube-system")
    assert kube_system
    assert seen.cluster_uid == kube_system["metadata"]["uid"]
    assert seen.unread == ()
    assert "ec2nodeclasses.karpenter.k8s.aws" in seen.absent
    assert "nodepools.karpenter.sh" not in seen.absent


def test_an_observer_sees_objects_of_every_kind_come_and_go(cluster: Lab, client: Client) -> None:
    with Watched(client, QUICK) as watched:
        watched.synced()
        assert watched.observer.observe().nodes == ()
        for manifest in one_of_each():
            cluster.admin.apply(manifest)
        seen = watched.until(is_complete)
        assert watched.observer.observe().nodes is seen.nodes
        cluster.admin.delete("leases", "a", identities.NAMESPACE)
        cluster.wipe()
        gone = watched.until(lambda now: not now.nodes and not now.pods and not now.node_pools and not now.workloads)
        assert gone.unread == ()


def test_a_kind_may_appear_later_and_go_again(cluster: Lab, client: Client) -> None:
    definition = yaml.safe_load((REPOSITORY / "schemas" / "crds" / f"{OUR_DEFINITION}.yaml").read_text())
    pool: Manifest = {"apiVersion": "gpu.scheduling/v1", "kind": "GpuPool", "metadata": {"name": "late"}}
    pool["spec"] = specimens.smallest(GPU_POOL.shape)
    server = cluster.running("apiserver")
    assert server
    with Watched(client, QUICK) as watched:
        watched.synced()
        assert OUR_DEFINITION in watched.observer.observe().absent
        cluster.admin.apply(definition)
        try:
            server.wait_until(lambda: cluster.admin.request("GET", GPU_POOLS).code == 200)
            server.wait_until(lambda: cluster.admin.request("POST", GPU_POOLS, pool).code == 201)
            seen = watched.until(lambda now: [each.name for each in now.policies] == ["late"])
            assert OUR_DEFINITION not in seen.absent
        finally:
            cluster.admin.delete("customresourcedefinitions", OUR_DEFINITION)
        gone = watched.until(lambda now: OUR_DEFINITION in now.absent)
        assert gone.policies == ()
        assert gone.unread == ()


def test_what_may_not_be_listed_is_unread_and_says_which_right_is_missing(cluster: Lab) -> None:
    admin = cluster.admin
    cluster.load(fleet.nodes(2))
    role = admin.get("clusterroles", "reconciler-observe")
    assert role
    try:
        rules = [rule for rule in role["rules"] if "karpenter.sh" not in rule["apiGroups"]]
        admin.merge(admin.path("clusterroles", "reconciler-observe"), {"rules": rules})
        client = client_of(cluster)
        server = cluster.running("apiserver")
        assert server
        server.wait_until(lambda: "nodepools.karpenter.sh" in {each.kind for each in observe_once(client).unread})
        seen = observe_once(client)
        assert {each.kind for each in seen.unread} == {"nodeclaims.karpenter.sh", "nodepools.karpenter.sh"}
        missing = "may not list them: the role needs list and watch, and `reconciler rbac` prints one with both"
        assert seen.why_unread("nodepools.karpenter.sh") == f"nodepools.karpenter.sh: {missing}"
        assert len(seen.nodes) == 2
        with Watched(client, QUICK) as watched:
            assert watched.synced().observer.observe().unread == seen.unread
            admin.merge(admin.path("clusterroles", "reconciler-observe"), {"rules": role["rules"]})
            watched.until(lambda now: not now.unread)
    finally:
        admin.merge(admin.path("clusterroles", "reconciler-observe"), {"rules": role["rules"]})


def test_observing_only_reads(filled: Lab, client: Client) -> None:
    audit = filled.audit()
    observe_once(client)
    with Watched(client, QUICK) as watched:
        watched.synced()
        watched.until(is_complete)
    entries = audit.entries(identities.RECONCILER)
    assert {each.write.verb for each in entries} == {"get", "list", "watch"}
    assert all(each.user_agent.startswith("reconciler/") for each in entries)
    assert {each.write.code for each in entries} <= {200}


def test_more_than_a_page_is_of_one_moment(cluster: Lab, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflector, "PAGE", 20)
    cluster.load(fleet.nodes(21))
    audit = cluster.audit()
    assert len(observe_once(client).nodes) == 21
    asked = [each for each in audit.entries(identities.RECONCILER) if each.write.object == "nodes"]
    assert len(asked) == 2


def test_threads_end_with_their_observer(client: Client) -> None:
    with Watched(client, QUICK) as watched:
        watched.synced()
        running = [each for each in threading.enumerate() if each.name.startswith("watch ")]
    assert len(running) == len(RESOURCE_KINDS)
    assert not any(each.is_alive() for each in running)


def test_the_kubeconfig_names_the_cluster(cluster: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.load(fleet.nodes(1))
    for name, api in (("by-token", identities.reconciler(cluster.admin)), ("by-certificate", cluster.admin)):
        monkeypatch.setenv("KUBECONFIG", str(cluster.site.kubeconfig(name, api)))
        assert [each.name for each in observe_once(connect("lab")).nodes] == ["gpu-0"]
