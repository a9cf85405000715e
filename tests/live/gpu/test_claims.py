"""A pod with a GpuClaim is bound with its GPUs, by the real second scheduler and the extender of a replica."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.model import names
from tests.lab import fleet
from tests.lab.api import Manifest
from tests.lab.lab import Lab
from tests.stages.claims import ClaimSite
from tests.stages.definitions import defined


@pytest.fixture
def claims(cluster: Lab, tmp_path: Path) -> Iterator[ClaimSite]:
    with defined(cluster):
        cluster.start("scheduler", "kwok")
        site = ClaimSite(cluster, tmp_path)
        yield site
        site.site.clean()


def test_the_example_of_the_spec(claims: ClaimSite) -> None:
    claims.nodes(1, [{"island": "a", "bandwidthGBps": 600}, {"island": "a", "bandwidthGBps": 600}, {"island": "b"}])
    claims.claim("my-gpu-request", count=2, policy="contiguous")
    with claims.running():
        claims.pod("my-workload", "my-gpu-request", 2)
        pod = claims.admin.wait_for("pods", "my-workload", fleet.is_running, "default")
        assert pod["spec"]["nodeName"] == "gpu-0"
        assert annotations(pod)[names.ALLOCATED] == "gpu-0:0,1"
        assert annotations(pod)[names.DEVICES] == "GPU-gpu-0-0,GPU-gpu-0-1"
        assert claims.leases() == dict.fromkeys(("gpu-gpu-0-0", "gpu-gpu-0-1"), pod["metadata"]["uid"])
        status = claims.admin.wait_for("gpuclaims", "my-gpu-request", all_pods_are_bound, "default")["status"]
        (allocation,) = status["allocations"]
        assert (allocation["podUID"], allocation["phase"]) == (pod["metadata"]["uid"], "Bound")
        assert (allocation["node"], allocation["devices"]) == ("gpu-0", [0, 1])
        assert allocation["uuids"] == ["GPU-gpu-0-0", "GPU-gpu-0-1"]
        assert (allocation["bandwidthGBps"], allocation["score"]["oneIsland"]) == (600, True)
        claims.admin.delete("pods", "my-workload", "default", grace_seconds=0)
        claims.admin.wait_for("leases", "gpu-gpu-0-0", lambda found: found is None, names.LEASES_NAMESPACE)
        claims.admin.wait_for("leases", "gpu-gpu-0-1", lambda found: found is None, names.LEASES_NAMESPACE)


def test_many_pods_at_once_get_each_gpu_once(claims: ClaimSite) -> None:
    nodes, pods = 40, 200
    claims.nodes(nodes)
    for gpus in (1, 2):
        claims.claim(f"of-{gpus}", count=gpus)
    audit = claims.lab.audit()
    with claims.running():
        began = time.monotonic()
        made = claims.pods([(f"train-{number}", f"of-{1 + number % 2}", 1 + number % 2) for number in range(pods)])
        bound = claims.until_bound(made, within=60)
        seconds = time.monotonic() - began
    taken = [gpu for pod in bound for gpu in allocated(pod)]
    assert len(taken) == len(set(taken)) == 300
    assert len(claims.leases()) == 300
    print(f"{pods / seconds:.0f} pods a second, {seconds:.1f} s; writes {len(audit.entries())}")
    assert seconds < 30


def all_pods_are_bound(claim: Manifest | None) -> bool:
    return claim is not None and claim.get("status", {}).get("summary") == "1 of 1"


def allocated(pod: Manifest) -> list[str]:
    """node/id of each GPU."""
    node, _, ids = annotations(pod)[names.ALLOCATED].rpartition(":")
    assert node == pod["spec"]["nodeName"]
    return [f"{node}/{each}" for each in ids.split(",")]


def annotations(pod: Manifest) -> dict[str, str]:
    found: dict[str, str] = pod["metadata"]["annotations"]
    return found
