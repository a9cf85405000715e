"""deploy/scheduler: the shipped account and configuration bind pods, with certificates that the replica makes."""

import base64
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import urllib3

from reconciler.controller.cluster import current_instant
from reconciler.model import names
from reconciler.schema.scheduler import ExtenderFiles
from reconciler.serve.certificates import read_certificates, written_scheduler_secret
from tests.lab import fleet, identities
from tests.lab.api import Manifest, Refused
from tests.lab.identities import NAMESPACE, SECOND_SCHEDULER, TENANT_NAMESPACE
from tests.lab.lab import Lab
from tests.lab.ports import free_ports
from tests.stages import second_scheduler, volumes, webhook
from tests.stages.claims import ClaimSite, claim_site
from tests.stages.controlled import taken_away
from tests.stages.lending import faults_of
from tests.stages.second_scheduler import deployed


@pytest.fixture
def claims(cluster: Lab, tmp_path: Path) -> Iterator[ClaimSite]:
    with claim_site(cluster, tmp_path) as site:
        second_scheduler.install(cluster.admin)
        try:
            yield site
        finally:
            second_scheduler.remove(cluster.admin)


def test_a_pod_is_bound_by_the_shipped_account_and_configuration(claims: ClaimSite, tmp_path: Path) -> None:
    audit = claims.lab.audit()
    with deployed(claims, tmp_path / "mounted"):
        claims.nodes(2)
        claims.claim("four", count=4, policy="requireContiguous")
        claims.claim("all", count=8)
        claims.lab.load(volumes.waiting_for_a_pod("gpu-1"))
        disk = {"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}
        claims.pod("train", "four", 4, volumes=[disk])
        (train,) = claims.until_bound(["train"])  # first: its volume is on one of the nodes
        claims.pod("large", "all", 8)
        (large,) = claims.until_bound(["large"])
        assert [each["spec"]["nodeName"] for each in (train, large)] == ["gpu-1", "gpu-0"]
        assert len(claims.leases()) == 12
        claims.admin.wait_for("pods", "train", fleet.is_running, "default")
        election = claims.admin.get("leases", names.GPU_SCHEDULER, NAMESPACE)
        assert election
        assert election["spec"]["holderIdentity"]
    entries = audit.entries()
    assert faults_of(entries) == []
    own = [each for each in entries if each.write.user == SECOND_SCHEDULER]
    assert own
    assert [each.write for each in own if each.write.code in {401, 403}] == []


def test_nobody_but_the_scheduler_is_answered(claims: ClaimSite, tmp_path: Path) -> None:
    with deployed(claims, tmp_path / "mounted") as (_, files):
        ours = read_certificates(secret(claims, names.WEBHOOK_CERTIFICATES))
        other = written_scheduler_secret({}, ours, ours.facts.authorities[0].fingerprint, "other", current_instant())
        serving = secret(claims, names.WEBHOOK_CERTIFICATES)
        lab = claims.client
        clients = {
            "the scheduler": (Path(files.certificate).read_bytes(), Path(files.key).read_bytes()),
            "no certificate": None,
            "the same name by the authority of the cluster": (lab.certificate.read_bytes(), lab.key.read_bytes()),
            "the serving certificate": (serving["tls.crt"], serving["tls.key"]),
            "another name by the same authority": (other["tls.crt"], other["tls.key"]),
        }
        answered = {name: asked(claims, files, pair, tmp_path) for name, pair in clients.items()}
        assert answered == {name: 200 if name == "the scheduler" else 0 for name in clients}


@pytest.fixture
def hook(claims: ClaimSite) -> Iterator[int]:
    """The port of the webhook that the API server calls; annotations of pods are protected too."""
    (port,) = free_ports(1)
    webhook.install(claims.admin, port)
    policies = webhook.shipped("annotations.yaml")
    for each in policies:
        claims.admin.apply(each)
    yield port
    taken_away(claims.admin, policies)
    webhook.remove(claims.admin)


def test_a_pod_needs_nothing_but_the_annotation_with_its_claim(claims: ClaimSite, hook: int, tmp_path: Path) -> None:
    claims.claim("pair", TENANT_NAMESPACE, count=2, policy="requireContiguous")
    tenant = identities.tenant(claims.admin)
    with deployed(claims, tmp_path / "mounted", f"--webhook=127.0.0.1:{hook}"):
        claims.nodes(1)
        webhook.wait_until_in_force(claims.admin, TENANT_NAMESPACE)
        with pytest.raises(Refused) as refused:
            tenant.create(annotated("wrong", "absent"))
        denied = f'admission webhook "{names.WEBHOOK}" denied the request: '
        remedy = f"create it first, or correct the annotation {names.CLAIM} of the pod"
        assert refused.value.message == f"{denied}there is no GpuClaim team-a/absent: {remedy}"
        tenant.create(annotated("train", "pair"))
        pod = claims.admin.wait_for("pods", "train", fleet.is_running, TENANT_NAMESPACE)
        leases = claims.leases()
    spec, annotations = pod["spec"], pod["metadata"]["annotations"]
    assert (spec["schedulerName"], spec["nodeName"]) == (names.GPU_SCHEDULER, "gpu-0")
    assert annotations[names.ALLOCATED] == "gpu-0:0,1"
    assert annotations[names.DEVICES] == "GPU-gpu-0-0,GPU-gpu-0-1"
    assert leases == dict.fromkeys(("gpu-gpu-0-0", "gpu-gpu-0-1"), pod["metadata"]["uid"])
    containers = {each["name"]: each for each in (*spec["containers"], *spec["initContainers"])}
    assert containers.keys() == {"main", "log", "check"}
    for name, each in containers.items():
        visible = {part["name"]: part["valueFrom"]["fieldRef"]["fieldPath"] for part in each["env"]}
        assert visible["CUDA_VISIBLE_DEVICES"] == f"metadata.annotations['{names.DEVICES}']", name
        assert each["resources"].get("limits", {}).get(names.NVIDIA_GPU) == ("2" if name == "main" else None)


def annotated(name: str, claim: str) -> Manifest:
    """A pod as a user writes it, with several containers."""
    image = "registry.k8s.io/pause:3.9"
    made = fleet.Pod(name, TENANT_NAMESPACE, annotations={names.CLAIM: claim})
    containers = [{"name": each, "image": image} for each in ("main", "log")]
    return made.with_spec(containers=containers, initContainers=[{"name": "check", "image": image}]).manifest()


def secret(claims: ClaimSite, name: str) -> dict[str, bytes]:
    found = claims.admin.get("secrets", name, NAMESPACE)
    assert found
    return {key: base64.b64decode(content) for key, content in found["data"].items()}


def asked(claims: ClaimSite, files: ExtenderFiles, client: tuple[bytes, bytes] | None, folder: Path) -> int:
    """The status of an answer; 0 if there is none."""
    context = ssl.create_default_context(cafile=files.authority)
    if client is not None:
        chain, key = folder / "client.crt", folder / "client.key"
        for path, content in zip((chain, key), client, strict=True):
            path.write_bytes(content)
        context.load_cert_chain(chain, key)
    name = second_scheduler.extender_name()
    pool = urllib3.HTTPSConnectionPool(
        "127.0.0.1", claims.port, ssl_context=context, server_hostname=name, assert_hostname=name, retries=False
    )
    body = {"Pod": {"metadata": {"name": "p", "namespace": "default"}}, "NodeNames": []}
    try:
        with pool:
            return pool.request("POST", "/filter", json=body, timeout=10).status
    except (urllib3.exceptions.HTTPError, OSError):
        return 0
