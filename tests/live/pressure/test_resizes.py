"""Elastic pods are resized by the real API server as their agents are permitted."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab.lab import Lab
from tests.stages.elastic import GI, ElasticSite, elastic_site

PODS, NODES = 20, 4

pytestmark = pytest.mark.long


@pytest.fixture
def site(cluster: Lab, tmp_path: Path) -> Iterator[ElasticSite]:
    with elastic_site(cluster, tmp_path) as found:
        yield found


def cpu_of(site: ElasticSite, name: str) -> str:
    """What the kubelet has given the container."""
    found: Any = site.admin.get("pods", name, "default")
    (status,) = found["status"]["containerStatuses"]
    return str(status["resources"]["requests"]["cpu"])


def until(site: ElasticSite, name: str, holds: Callable[[Any], bool]) -> None:
    site.admin.wait_for("pods", name, lambda found: found is not None and holds(found), "default")


def given(cpu: str) -> Callable[[Any], bool]:
    def holds(found: Any) -> bool:
        statuses = found["status"].get("containerStatuses") or [{}]
        return bool((statuses[0].get("resources") or {}).get("requests", {}).get("cpu") == cpu)

    return holds


def test_pods_are_resized_as_permitted_and_a_killed_controller_takes_nothing_away(
    site: ElasticSite,
) -> None:
    site.nodes(NODES)
    pods = {f"p{number}": site.pod(f"p{number}", f"gpu-{number % NODES}", resize="Done") for number in range(PODS)}
    for name in pods:
        until(site, name, given("1"))
    tokens = {name: site.token(pod) for name, pod in pods.items()}
    with site.answering() as replica:
        permits = {name: site.ask(name, tokens[name], vCPUs=3_000, mem=4 * GI)[1] for name in pods}
        replica.kill()
    site.site.end_term()
    with site.answering():
        for name, permit in permits.items():
            status, answer = site.ask(name, tokens[name], permit["permitToken"], vCPUs=3_000, mem=4 * GI)
            assert (status, answer["permit"]) == (200, permit["permit"])
        for name in pods:
            until(site, name, given("3"))
        for name in pods:
            assert site.ask(name, tokens[name], vCPUs=500)[0] == 200
        for name in pods:
            until(site, name, given("500m"))
        status, state = site.state(site.node_agent("gpu-0"))
        assert status == 200
        for node in state["nodes"]:
            figures = node["figures"]["cpu"]
            assert figures["reserved"] <= figures["reservable"]


def is_pending(found: Any) -> bool:
    return any(each["type"] == "PodResizePending" for each in found["status"]["conditions"])


@pytest.mark.parametrize("outcome", ["Deferred", "Infeasible"])
def test_a_resize_that_the_kubelet_does_not_carry_out_stays_reserved(site: ElasticSite, outcome: str) -> None:
    site.nodes(1)
    pod = site.pod("a", "gpu-0", resize=outcome)
    until(site, "a", given("1"))
    token = site.token(pod)
    with site.answering() as replica:
        assert site.ask("a", token, vCPUs=4_000)[0] == 200
        until(site, "a", is_pending)
        replica.wait_for(lambda line: "ResizePending" in str(line))
        status, state = site.state(site.node_agent("gpu-0"))
        assert status == 200
        assert [node["figures"]["cpu"]["reserved"] for node in state["nodes"]] == [4_000]
        assert cpu_of(site, "a") == "1"
