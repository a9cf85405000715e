"""A pod with a GpuClaim is bound with its GPUs, by the real second scheduler and the extender of a replica."""

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.model import names
from tests.lab import fleet
from tests.lab.api import Manifest
from tests.lab.identities import RECONCILER
from tests.lab.lab import Lab
from tests.lab.proxy.faults import Cut, Delay, Fault, LoseAnswer, Match
from tests.slow import long
from tests.stages.claims import ClaimSite, claim_site
from tests.stages.lending import faults_of, writes_by_kind


@pytest.fixture
def claims(cluster: Lab, tmp_path: Path) -> Iterator[ClaimSite]:
    with claim_site(cluster, tmp_path) as site:
        yield site


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


@pytest.mark.long
def test_a_pod_is_woken_once_its_claim_exists(claims: ClaimSite) -> None:
    claims.nodes(1)
    with claims.running():
        claims.pod("early", "late", 1)
        claims.admin.wait_for("pods", "early", is_refused, "default")
        claims.claim("late", count=1)
        claims.until_bound(["early"], within=45)


@pytest.mark.parametrize(("nodes", "pods"), [(12, 60), long(40, 200)])
def test_many_pods_at_once_get_each_gpu_once(claims: ClaimSite, nodes: int, pods: int) -> None:
    claims.nodes(nodes)
    for gpus in (1, 2):
        claims.claim(f"of-{gpus}", count=gpus)
    wanted = [(f"train-{number}", f"of-{1 + number % 2}", 1 + number % 2) for number in range(pods)]
    gpus = sum(each for _, _, each in wanted)
    audit = claims.lab.audit()
    with claims.with_standby():
        began = time.monotonic()
        bound = claims.until_bound(claims.pods(wanted))
        seconds = time.monotonic() - began
    taken = [gpu for pod in bound for gpu in allocated(pod)]
    entries = audit.entries()
    assert faults_of(entries) == []
    assert len(taken) == len(set(taken)) == gpus == len(claims.leases())
    assert seconds < 30
    written = writes_by_kind(entries, RECONCILER)
    assert sum(count for kind, count in written.items() if "lease" in kind or "pod" in kind) <= 3 * pods + gpus, written


def test_a_binding_whose_answer_is_lost_binds_once(claims: ClaimSite) -> None:
    claims.nodes(1)
    claims.claim("one", count=2)
    audit = claims.lab.audit()
    with claims.lab.proxy() as proxy:
        lost = proxy.inject(Fault(LoseAnswer(), Match(verb="create", path="/binding")))
        with claims.running(through=proxy):
            bound = claims.until_bound(claims.pods([("one", "one", 2), ("two", "one", 2)]))
            proxy.wait_for(lost, 30)
    assert faults_of(audit.entries()) == []
    assert sorted(gpu for pod in bound for gpu in allocated(pod)) == [f"gpu-0/{number}" for number in range(4)]


@pytest.mark.parametrize("kills", [long(8), pytest.param(50, marks=pytest.mark.soak)])
def test_killed_in_the_midst_of_bindings_no_gpu_is_lent_twice_or_lost(claims: ClaimSite, kills: int) -> None:
    claims.nodes(2 + kills)
    claims.claim("two", count=2)
    audit, chance = claims.lab.audit(), random.Random(kills)
    with claims.lab.proxy() as proxy:
        wanted: list[str] = []
        for number in range(kills):
            act = LoseAnswer() if chance.random() < 0.5 else Cut(before_upstream=True)
            path = chance.choice(["/binding", "/leases", "/leases"])
            fatal = proxy.inject(Fault(act, Match(verb="create", path=path), skip=chance.randrange(4)))
            with claims.running(through=proxy) as replica:
                wanted += claims.pods([(f"pod-{number}-{each}", "two", 2) for each in range(4)])
                proxy.wait_for(fatal, 60)
                replica.kill()
            proxy.clear()
            claims.site.end_term()
        with claims.running():
            bound = claims.until_bound(wanted, within=150)
            taken = [gpu for pod in bound for gpu in allocated(pod)]
            assert len(taken) == len(set(taken)) == 8 * kills
            claims.until(lambda: len(claims.leases()) == len(taken))
    assert faults_of(audit.entries()) == []


@pytest.mark.long
def test_a_binding_that_comes_after_its_gpus_were_released_is_refused(claims: ClaimSite) -> None:
    """The Binding is on its way for longer than the planner waits, and nobody asks for it again."""
    claims.nodes(1)
    claims.claim("one", count=8)
    audit = claims.lab.audit()
    with claims.lab.proxy() as proxy:
        late = proxy.inject(Fault(Delay(80), Match(verb="create", path="/binding")))
        with claims.running(through=proxy):
            claims.pod("slow", "one", 8)
            proxy.wait_for(late, 30)
            began = time.monotonic()
            claims.lab.stop_part(names.GPU_SCHEDULER)
            claims.until(lambda: not claims.leases())
            assert time.monotonic() - began < 80
            time.sleep(max(0.0, began + 85 - time.monotonic()))
            claims.start_scheduler()
            (pod,) = claims.until_bound(["slow"])
    entries = audit.entries()
    codes = [each.write.code for each in entries if each.write.object == "pods/default/slow/binding"]
    assert (codes[0], codes[-1]) == (409, 201)
    assert faults_of(entries) == []
    assert len(allocated(pod)) == 8


def is_refused(pod: Manifest | None) -> bool:
    conditions = (pod or {}).get("status", {}).get("conditions") or ()
    return any(each["type"] == "PodScheduled" and each.get("reason") == "Unschedulable" for each in conditions)


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
