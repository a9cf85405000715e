"""Agents of elastic pods ask a real replica over TLS, with tokens of the real API server."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.model import names
from tests.lab.identities import NAMESPACE
from tests.lab.lab import Lab
from tests.stages.elastic import GI, ElasticSite, elastic_site


@pytest.fixture
def site(cluster: Lab, tmp_path: Path) -> Iterator[ElasticSite]:
    with elastic_site(cluster, tmp_path) as found:
        yield found


def test_each_agent_gets_permits_for_its_own_pod_only(site: ElasticSite) -> None:
    site.nodes(2)
    first, second = site.pod("first", "gpu-0"), site.pod("second", "gpu-1")
    with site.answering() as replica:
        token, other = site.token(first), site.token(second)
        status, answer = site.ask("first", token, vCPUs=4_000, mem=8 * GI)
        assert (status, answer["permit"]) == (200, {"vCPUs": 4_000, "mem": 8 * GI})
        assert answer["computeUnit"] == {"vCPUs": 250, "mem": GI}
        assert site.ask("second", other, vCPUs=2_000)[0] == 200
        for stranger, expected in (
            (other, 403),
            (site.node_agent("gpu-1"), 403),
            ("", 401),
            (token[:-8] + "AAAAAAAA", 401),
            (site.token(first, audience="https://kubernetes.default.svc"), 401),
            (site.lab.admin.credential.token or "opaque", 401),
        ):
            status, answer = site.ask("first", stranger, vCPUs=500)
            assert (status, list(answer)) == (expected, ["error"])
        assert site.ask("first", site.node_agent("gpu-0"), vCPUs=3_000)[0] == 200
        assert site.state(token)[0] == 403
        status, state = site.state(site.node_agent("gpu-1"))
        assert status == 200
        found = {pod["title"]: pod["permitted"]["cpu"] for each in state["nodes"] for pod in each["pods"]}
        assert found == {"default/first": 3_000, "default/second": 2_000}
        metrics = replica.get("/metrics")[1]
        assert 'reconciler_asks_total{status="403"} 2.0' in metrics
        # A permit for less frees nothing before the pod is smaller; it was never resized beyond 1.
        assert f'reconciler_pressure_reserved{{pool="a100",resource="cpu"}} {5_000.0}' in metrics


@pytest.mark.long
def test_a_new_pod_of_the_same_name_is_another_pod(site: ElasticSite) -> None:
    site.nodes(1)
    before = site.pod("same", "gpu-0")
    with site.answering():
        token = site.token(before)
        assert site.ask("same", token, vCPUs=2_000)[0] == 200
        site.admin.delete("pods", "same", "default", grace_seconds=0)
        site.admin.wait_for("pods", "same", lambda found: found is None, "default")
        after = site.pod("same", "gpu-0")
        site.until_asked("same", site.token(after), vCPUs=2_000)
        assert site.ask("same", token, vCPUs=2_000)[0] == 409


@pytest.mark.long
def test_a_permit_is_believed_by_the_next_leader(site: ElasticSite) -> None:
    site.nodes(1)
    pods = {name: site.pod(name, "gpu-0") for name in ("told", "silent", "forgetful")}
    tokens = {name: site.token(pod) for name, pod in pods.items()}
    with site.answering() as replica:
        status, told = site.ask("told", tokens["told"], vCPUs=6_000, mem=8 * GI)
        assert status == 200
        assert site.ask("forgetful", tokens["forgetful"], vCPUs=6_000)[0] == 200
        keys = site.admin.get("secrets", names.PERMIT_KEYS, NAMESPACE)
        assert keys
        assert len(json.loads(base64.b64decode(keys["data"]["keys.json"]))) == 1
        replica.kill()
    site.site.end_term()
    with site.answering():
        silent = {pod["title"]: pod.get("is_silent", False) for pod in _pods(site)}
        assert set(silent.values()) == {True}
        status, answer = site.ask("told", tokens["told"], told["permitToken"], vCPUs=6_000, mem=8 * GI)
        assert (status, answer["permit"]) == (200, {"vCPUs": 6_000, "mem": 8 * GI})
        (entry,) = [pod for pod in _pods(site) if pod["title"] == "default/told"]
        assert (entry["permitted"]["cpu"], entry.get("lacks", {}).get("cpu", 0)) == (6_000, 0)
        # Another pod cannot use the permit.
        assert site.ask("forgetful", tokens["forgetful"], told["permitToken"], vCPUs=1_000)[0] == 200
        found = {pod["title"]: pod.get("is_silent", False) for pod in _pods(site)}
        assert found == {"default/told": False, "default/silent": True, "default/forgetful": False}
        after = site.admin.get("secrets", names.PERMIT_KEYS, NAMESPACE)
        assert after
        assert after["data"] == keys["data"]


@pytest.mark.long
def test_only_the_leader_answers(site: ElasticSite) -> None:
    site.nodes(1)
    pod = site.pod("a", "gpu-0")
    with site.answering() as leader:
        token = site.token(pod)
        assert site.ask("a", token, vCPUs=2_000)[0] == 200
        site.port = site.second_port
        with site.site.replica(*site.arguments) as standby:
            site.wait_until_ready(standby)
            status, answer = site.ask("a", token, vCPUs=2_000)
            assert (status, "does not lead" in answer["error"]) == (503, True)
            assert leader.terminate()[0] == 0
            site.wait_until_answering(standby)
            assert site.ask("a", token, vCPUs=2_000)[0] == 200
            lease = site.admin.get("leases", names.LEADER_LEASE, NAMESPACE)
            assert lease
            assert lease["spec"]["leaseTransitions"] > 0
            assert site.state(site.node_agent("gpu-0"))[1]["epoch"] == lease["spec"]["leaseTransitions"]


def _pods(site: ElasticSite) -> list[dict[str, Any]]:
    status, state = site.state(site.node_agent("gpu-0"))
    assert status == 200
    return [pod for each in state["nodes"] for pod in each["pods"]]
