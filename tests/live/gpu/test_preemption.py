"""A pod with a claim of a higher priority: kube-scheduler chooses victims, and the extender says which would help."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.model import names
from tests.lab import fleet
from tests.lab.api import Manifest
from tests.lab.lab import Lab
from tests.stages.claims import ClaimSite, claim_site
from tests.stages.lending import faults_of

PRIORITIES = {"lowest": 1, "low": 10, "middle": 100, "high": 1_000}
SLOWLY = 4  # seconds that victims take to go: longer than kube-scheduler waits between two attempts
SCHEDULER = "system:kube-scheduler"


@pytest.fixture
def claims(cluster: Lab, tmp_path: Path) -> Iterator[ClaimSite]:
    with claim_site(cluster, tmp_path) as site:
        for name, value in PRIORITIES.items():
            cluster.admin.create(priority_class(name, value))
        yield site


def priority_class(name: str, value: int) -> Manifest:
    head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
    return {**head, "value": value}


def claimed(name: str, claim: str, gpus: int, priority: str) -> fleet.Pod:
    pod = fleet.Pod(name, gpus=gpus, annotations={names.CLAIM: claim})
    return pod.with_spec(schedulerName=names.GPU_SCHEDULER, priorityClassName=priority)


def on(node: str, pod: fleet.Pod) -> fleet.Pod:
    return pod.with_spec(nodeSelector={"kubernetes.io/hostname": node})


def create(claims: ClaimSite, *pods: fleet.Pod) -> None:
    for each in pods:
        claims.admin.create(each.manifest())
    claims.until_bound([each.name for each in pods])


def left(claims: ClaimSite) -> set[str]:
    """Pods that nobody has deleted."""
    pods = claims.admin.list("pods", "default")
    return {each["metadata"]["name"] for each in pods if not each["metadata"].get("deletionTimestamp")}


def test_victims_go_and_their_gpus_are_lent_to_the_pod(claims: ClaimSite) -> None:
    claims.nodes(1)
    claims.claim("two", count=2)
    claims.claim("all", count=8, policy="requireContiguous")
    audit = claims.lab.audit()
    with claims.running():
        create(claims, *(claimed(f"low-{number}", "two", 2, "low") for number in range(4)))
        assert len(claims.leases()) == 8
        create(claims, claimed("important", "all", 8, "high"))
        assert left(claims) == {"important"}
        (pod,) = claims.admin.list("pods", "default")
        assert claims.leases() == dict.fromkeys((f"gpu-gpu-0-{number}" for number in range(8)), pod["metadata"]["uid"])
    entries = audit.entries()
    assert faults_of(entries) == []
    deleted = [each.write.object for each in entries if each.write[:2] == (SCHEDULER, "delete")]
    assert sorted(deleted) == [f"pods/default/low-{number}" for number in range(4)]


@pytest.mark.long
def test_only_one_node_is_emptied_though_victims_take_long_to_go(claims: ClaimSite) -> None:
    """When the last victim is gone, its Leases are not released yet: kube-scheduler must not take the other node,
    whichever replica it asks."""
    claims.nodes(2)
    claims.claim("four", count=4)
    claims.claim("all", count=8)
    audit = claims.lab.audit()
    with claims.with_standby():
        create(claims, *(claimed(f"low-{number}", "four", 4, "low").dying_slowly(SLOWLY) for number in range(4)))
        create(claims, claimed("important", "all", 8, "high"))
        time.sleep(2)
        assert len(left(claims)) == 3
    assert faults_of(audit.entries()) == []


@pytest.mark.long
def test_a_node_is_not_offered_if_its_victims_hold_gpus_of_two_islands(claims: ClaimSite) -> None:
    """kube-scheduler prefers the victims on gpu-0, whose priority is lower."""
    claims.nodes(2, [{"island": "ab"[number // 4], "bandwidthGBps": 600} for number in range(8)])
    claims.claim("two", count=2)
    claims.claim("island", count=4, policy="requireContiguous")
    audit = claims.lab.audit()
    with claims.running():
        for number, priorities in enumerate(
            [("lowest", "low"), ("middle", "low"), ("lowest", "middle"), ("middle",) * 2]
        ):
            pods = [claimed(f"pod-{at}-{number}", "two", 2, priority) for at, priority in enumerate(priorities)]
            create(claims, *(on(f"gpu-{at}", pod) for at, pod in enumerate(pods)))
        held = {
            each["metadata"]["name"]: each["metadata"]["annotations"] for each in claims.admin.list("pods", "default")
        }
        assert {held[f"pod-0-{number}"][names.ALLOCATED] for number in (0, 2)} == {"gpu-0:0,1", "gpu-0:4,5"}
        create(claims, claimed("important", "island", 4, "high"))
        assert held.keys() - left(claims) == {"pod-1-0", "pod-1-1"}
        (important,) = claims.until_bound(["important"])
        assert important["metadata"]["annotations"][names.ALLOCATED] == "gpu-1:0,1,2,3"
    assert faults_of(audit.entries()) == []


@pytest.mark.long
def test_pods_without_a_claim_are_victims_too_and_none_on_a_pool_that_only_observes(claims: ClaimSite) -> None:
    """kube-scheduler prefers the victim in the other pool, whose priority is lower."""
    claims.site.write("other", allocation="agent", mode="Observe")
    other = fleet.Shape(pool="", labels={names.POOL: "other"}).node("other-0", "eu-1a")
    claims.lab.load([other])
    claims.report("other-0", [{"island": "a"}] * 8)
    claims.nodes(1)
    claims.admin.wait_for("nodes", "other-0", fleet.is_ready)
    claims.claim("all", count=8)
    with claims.running():
        plain = {"gpu-0": "low", "other-0": "lowest"}
        create(
            claims, *(on(at, fleet.Pod(f"plain-{at}", gpus=8).with_spec(priorityClassName=plain[at])) for at in plain)
        )
        create(claims, claimed("important", "all", 8, "high"))
        assert left(claims) == {"important", "plain-other-0"}
        assert len(claims.leases()) == 8
