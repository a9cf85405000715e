"""The API server calls the webhook for pods with a GpuClaim, and for no others."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from reconciler.model import names
from tests.lab import fleet, identities
from tests.lab.api import Answer, Api, Manifest
from tests.lab.identities import NAMESPACE, TENANT_NAMESPACE
from tests.lab.lab import Lab
from tests.lab.ports import free_ports
from tests.live.acting.test_deployed import STRICT
from tests.stages import definitions, webhook
from tests.stages.controlled import Site
from tests.stages.replica import Replica
from tests.unit.deploy.test_deploy import objects

TEAM = TENANT_NAMESPACE
FIELD = f"metadata.annotations['{names.DEVICES}']"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.fixture(scope="module", autouse=True)
def alone(lab: Lab) -> None:
    lab.stop_parts()


@pytest.fixture
def site(cluster: Lab, tmp_path: Path) -> Iterator[Site]:
    with definitions.defined(cluster):
        made = Site(cluster, tmp_path)
        try:
            yield made
        finally:
            webhook.remove(cluster.admin)
            made.clean()


@pytest.fixture
def port(site: Site) -> int:
    """The port that the API server calls."""
    (port,) = free_ports(1)
    webhook.install(site.lab.admin, port)
    return port


def claim(name: str = "train", count: int = 2, **spec: Any) -> Manifest:
    metadata = {"name": name, "namespace": TEAM}
    return {
        "apiVersion": "gpu.scheduling/v1",
        "kind": "GpuClaim",
        "metadata": metadata,
        "spec": {"devices": {"count": count}, **spec},
    }


def pod(name: str, claimed: str | None = "train", **spec: Any) -> Manifest:
    annotations = {names.CLAIM: claimed} if claimed is not None else {}
    made = fleet.Pod(name, namespace=TEAM, annotations=annotations).manifest()
    made["spec"] |= spec
    return made


def created(admin: Api, manifest: Manifest) -> Answer:
    return admin.request("POST", admin.path("pods", namespace=TEAM), manifest)


@contextmanager
def serving(site: Site, port: int) -> Iterator[Replica]:
    """A replica that serves, and an API server that knows."""
    with site.replica("--webhook", f"127.0.0.1:{port}") as replica:
        webhook.wait_until_in_force(site.lab.admin, TEAM)
        yield replica


def test_every_object_is_taken_as_it_is(cluster: Lab) -> None:
    """And the parts that kustomize adds to the controller fit it."""
    for each in [
        each
        for file in ("rbac", "webhook", "annotations", "network-policy")
        for each in webhook.shipped(f"{file}.yaml")
    ]:
        metadata = each["metadata"]
        path = cluster.admin.path(
            f"{each['kind']}@{each['apiVersion']}", metadata["name"], metadata.get("namespace", "")
        )
        answer = cluster.admin.request("PATCH", f"{path}?{STRICT}", each, "application/apply-patch+yaml")
        assert answer.code in {200, 201}, json.dumps(answer.body)
    assert len(objects(webhook.WEBHOOK)) > len(objects(webhook.WEBHOOK.parent / "core"))


def test_a_pod_with_a_claim_is_patched_as_written(site: Site, port: int) -> None:
    admin = site.lab.admin
    site.write("a100", allocation="agent")
    l4 = {"model": "l4", "count": 4, "memory": "24Gi"}
    site.write("l4", devices=l4, instanceTypes=[{"name": "g6.12xlarge"}], allocation="agent")
    with serving(site, port) as replica:
        answer = created(admin, pod("early"))
        assert (answer.code, "there is no GpuClaim team-a/train: create it first" in str(answer.body)) == (403, True)
        admin.create(claim(count=8))
        init = [{"name": "check", "image": "registry.k8s.io/pause:3.9", "env": [{"name": "A", "value": "b"}]}]
        made = created(admin, pod("train", initContainers=init))
        assert made.code == 201, made.body
        spec = made.body["spec"]
        assert spec["schedulerName"] == names.GPU_SCHEDULER
        has_gpus_of_the_claim(spec)
        refused = created(admin, pod("other", schedulerName="volcano"))
        assert refused.code == 403
        assert "needs gpu-scheduler" in refused.body["message"]
        # A pod as it stands, created again: it passes, and nothing is added twice.
        again = pod("again")
        again["spec"] = {key: value for key, value in spec.items() if key != "nodeName"}
        repeated = created(admin, again)
        assert repeated.code == 201, repeated.body
        for field in ("affinity", "schedulerName", "containers", "initContainers"):
            assert without_tokens(repeated.body["spec"][field]) == without_tokens(spec[field])
        assert 'reconciler_webhook_reviews_total{result="ClaimAbsent"}' in replica.get("/metrics")[1]
        assert replica.terminate()[0] == 0


def has_gpus_of_the_claim(spec: Manifest) -> None:
    """8 GPUs of the pool a100, in all containers."""
    (main,) = spec["containers"]
    assert main["resources"]["requests"]["nvidia.com/gpu"] == main["resources"]["limits"]["nvidia.com/gpu"] == "8"
    assert main["resources"]["requests"]["cpu"] == "100m"
    for container in (main, *spec["initContainers"]):
        fields = [(each["name"], each["valueFrom"]["fieldRef"]["fieldPath"]) for each in container["env"][:2]]
        assert fields == [("CUDA_VISIBLE_DEVICES", FIELD), ("NVIDIA_VISIBLE_DEVICES", FIELD)]
    assert [each["name"] for each in spec["initContainers"][0]["env"][2:]] == ["A"]
    assert spec["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"] == [
        {"matchExpressions": [{"key": "karpenter.sh/nodepool", "operator": "In", "values": ["a100"]}]},
        {
            "matchExpressions": [
                {"key": "karpenter.sh/nodepool", "operator": "DoesNotExist"},
                {"key": "gpu.scheduling/pool", "operator": "In", "values": ["a100"]},
            ]
        },
    ]


def without_tokens(part: Any) -> Any:
    """Without the volumes of tokens, which have random names."""
    if isinstance(part, list):
        return [without_tokens(each) for each in part]
    if isinstance(part, dict):
        return {key: without_tokens(value) for key, value in part.items() if key != "volumeMounts"}
    return part


def test_pods_on_pools_with_a_device_plugin_get_no_variables_and_a_warning(site: Site, port: int) -> None:
    admin = site.lab.admin
    site.write("a100")
    with serving(site, port):
        admin.create(claim(devices={"count": 2, "policy": "contiguous"}))
        response = admin._pool.request(  # noqa: SLF001 - the warning is a header
            "POST",
            admin.url + admin.path("pods", namespace=TEAM),
            body=json.dumps(pod("train")).encode(),
            headers={**admin._pool.headers, "Content-Type": "application/json"},  # noqa: SLF001
        )
        assert response.status == 201
        assert "is best effort" in response.headers["Warning"]
        (main,) = json.loads(response.data)["spec"]["containers"]
        assert not main.get("env")
        assert main["resources"]["limits"] == {"nvidia.com/gpu": "2"}


def test_another_replica_serves_with_the_same_certificates(site: Site, port: int) -> None:
    admin = site.lab.admin
    site.write("a100")
    with serving(site, port) as first:
        before = admin.get("secrets", names.WEBHOOK_CERTIFICATES, NAMESPACE)
        first.terminate()
    assert created(admin, pod("late")).code == 500
    with serving(site, port):
        after = admin.get("secrets", names.WEBHOOK_CERTIFICATES, NAMESPACE)
    assert before
    assert after
    assert before["data"] == after["data"]


# --- Pods without a claim do not depend on the webhook.

ODD: tuple[dict[str, Any], ...] = (
    {},
    {"annotations": None},
    {"annotations": {}},
    {"annotations": {"": "x"}},
    {"annotations": {"gpu.scheduling/claims": "train"}},
    {"annotations": {"example.com/gpu.scheduling": "claim"}},
    {"annotations": {"a.b": "x" * 200_000}},
    {"labels": {"gpu.scheduling/claim": "train"}},
    {"annotations": {names.WAIT_FOR_CAPACITY: "true", "kubernetes.io/config.seen": "x"}},
    {"generateName": "odd-", "finalizers": ["example.com/odd"]},
)


def odd_pods() -> Iterator[Manifest]:
    for number in range(100):
        made = pod(f"plain-{number}", None)
        made["metadata"] |= ODD[number % len(ODD)]
        yield made


def all_pass(admin: Api) -> None:
    """Except those that the API server itself refuses."""
    for manifest in odd_pods():
        answer = created(admin, manifest)
        is_invalid = "" in (manifest["metadata"].get("annotations") or {})
        assert answer.code == (422 if is_invalid else 201), answer.body
    assert len(admin.list("pods", TEAM)) == 90


def test_100_pods_without_claims_pass_while_the_webhook_is_down(site: Site, port: int) -> None:
    admin = site.lab.admin
    refused_at_last(admin)
    all_pass(admin)
    answer = created(admin, pod("claimed"))
    assert answer.code == 500
    assert names.WEBHOOK in answer.body["message"]


@pytest.mark.long
def test_100_pods_without_claims_pass_while_the_webhook_does_not_answer(site: Site, port: int) -> None:
    admin = site.lab.admin
    refused_at_last(admin)
    with webhook.Silent(port) as silent:
        all_pass(admin)
        assert silent.accepted == 0
        began = time.monotonic()
        answer = created(admin, pod("claimed"))
        assert (answer.code, silent.accepted > 0) == (500, True)
        assert time.monotonic() - began < 20


def refused_at_last(admin: Api) -> None:
    """Waits until the API server has taken note of the configuration."""
    deadline = time.monotonic() + 30
    while created(admin, pod("probe")).code != 500:
        admin.delete("pods", "probe", TEAM, grace_seconds=0)
        assert time.monotonic() < deadline
        time.sleep(0.1)


# --- Annotations that fix the GPUs of a pod.


def test_the_annotations_of_claims_cannot_be_changed_later(cluster: Lab) -> None:
    admin = cluster.admin
    tenant = identities.tenant(admin)
    policies = webhook.shipped("annotations.yaml")
    for each in policies:
        admin.apply(each)
    try:
        admin.create(pod("train"))
        admin.create(pod("plain", None))
        path = f"{admin.path('pods', namespace=TEAM)}/plain"
        deadline = time.monotonic() + 30
        while changed(tenant, path, {names.DEVICES: "GPU-1"}) == 200:  # until the policy is in force
            assert time.monotonic() < deadline
            admin.delete("pods", "plain", TEAM, grace_seconds=0)
            admin.create(pod("plain", None))
            time.sleep(0.1)
        for annotations in (
            {names.DEVICES: ""},
            {names.DEVICES: "GPU-1", "a": "b"},
            {names.ALLOCATED: "node-a:0,1"},
            {names.CLAIM: "other"},
        ):
            expected = 200 if annotations == {names.DEVICES: ""} else 422
            assert changed(tenant, path, annotations) == expected
            assert changed(admin, path, annotations) == expected
        claimed = f"{admin.path('pods', namespace=TEAM)}/train"
        assert changed(admin, claimed, {names.CLAIM: None}) == 422
        assert changed(admin, claimed, {"a": "b"}) == 200
        status = {"status": {"conditions": [{"type": "PodScheduled", "status": "False"}]}}
        assert admin.request("PATCH", f"{claimed}/status", status, "application/merge-patch+json").code == 200
        hidden = {**status, "metadata": {"annotations": {names.DEVICES: "GPU-1"}}}
        assert admin.request("PATCH", f"{claimed}/status", hidden, "application/merge-patch+json").code == 422
    finally:
        for each in reversed(policies):
            plural = "validatingadmissionpolicybindings" if "Binding" in each["kind"] else "validatingadmissionpolicies"
            admin.delete(plural, each["metadata"]["name"])


def changed(api: Api, path: str, annotations: Mapping[str, str | None]) -> int:
    return api.request("PATCH", path, {"metadata": {"annotations": annotations}}, "application/merge-patch+json").code
