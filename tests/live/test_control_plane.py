"""The control plane is the real one, speaks verified TLS, and knows its identities apart."""

import ssl

import pytest
import urllib3

from tests.lab import fleet, identities
from tests.lab.api import Api, Credential
from tests.lab.lab import Lab


def test_it_is_the_kubernetes_that_was_pinned(lab: Lab) -> None:
    assert lab.admin.must("GET", "/version")["gitVersion"] == "v1.36.3"


def test_a_client_that_does_not_trust_the_lab_s_authority_refuses_to_talk(lab: Lab) -> None:
    with pytest.raises(urllib3.exceptions.SSLError), urllib3.PoolManager(retries=False) as pool:
        pool.request("GET", lab.site.api_url)


def test_etcd_talks_to_nobody_without_a_certificate(lab: Lab) -> None:
    context = ssl.create_default_context(cafile=str(lab.site.authority.certificate))
    with pytest.raises(urllib3.exceptions.HTTPError), urllib3.PoolManager(ssl_context=context, retries=False) as pool:
        pool.request("GET", f"{lab.site.etcd_url}/health")


def test_nobody_in_particular_may_do_nothing(lab: Lab) -> None:
    stranger = Api(lab.site.api_url, lab.site.authority.certificate, Credential())
    assert stranger.request("GET", "/api/v1/nodes").code == 403


def test_the_reconciler_reads_what_it_plans_from_and_nothing_else(cluster: Lab) -> None:
    reconciler = identities.reconciler(cluster.admin)
    for plural in ("nodes", "pods", "poddisruptionbudgets", "nodepools", "nodeclaims", "resourceclaims"):
        reconciler.list(plural)
    assert reconciler.request("GET", "/api/v1/secrets").code == 403
    assert reconciler.request("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases").code == 403


def test_the_reconciler_gets_403_for_what_is_outside_its_rights(cluster: Lab) -> None:
    cluster.load(fleet.nodes(1))
    audit = cluster.audit()
    reconciler = identities.reconciler(cluster.admin)
    assert reconciler.request("DELETE", "/api/v1/nodes/gpu-0").code == 403
    taint = {"spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}}
    assert reconciler.request("PATCH", "/api/v1/nodes/gpu-0", taint, "application/merge-patch+json").code == 403
    assert audit.writes(identities.RECONCILER) == [
        (identities.RECONCILER, "delete", "nodes/gpu-0", 403),
        (identities.RECONCILER, "patch", "nodes/gpu-0", 403),
    ]


def test_an_agent_s_token_says_which_node_it_is_of(cluster: Lab) -> None:
    cluster.load(fleet.nodes(2))
    agent = identities.agent(cluster.admin, "gpu-1")
    assert identities.claims_of(agent)["kubernetes.io"]["node"]["name"] == "gpu-1"
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    seen = agent.must("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review)["status"]["userInfo"]
    assert seen["username"] == identities.AGENT
    assert seen["extra"]["authentication.kubernetes.io/node-name"] == ["gpu-1"]


def test_a_tenant_runs_pods_in_its_own_namespace_only(cluster: Lab) -> None:
    tenant = identities.tenant(cluster.admin)
    tenant.create(fleet.Pod("mine", identities.TENANT_NAMESPACE).manifest())
    assert tenant.request("POST", "/api/v1/namespaces/default/pods", fleet.Pod("theirs").manifest()).code == 403
    assert tenant.request("GET", "/api/v1/nodes").code == 403


def test_a_wiped_cluster_is_empty_finalizers_or_not(cluster: Lab) -> None:
    stuck = fleet.Pod("stuck").unseen().manifest()
    stuck["metadata"]["finalizers"] = ["lab/never"]
    node = fleet.nodes(1)[0]
    node["metadata"]["finalizers"] = ["lab/never"]
    cluster.load([node, stuck])
    cluster.admin.delete("nodes", "gpu-0")
    cluster.wipe()
    assert cluster.admin.list("nodes") == cluster.admin.list("pods", "default") == []
