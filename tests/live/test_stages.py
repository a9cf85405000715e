"""Pods live and die on KWOK as they would on a kubelet, as slowly as a test asks for."""

import time

import pytest

from tests.lab import fleet
from tests.lab.api import Manifest, Refused
from tests.lab.fleet import Pod
from tests.lab.lab import Lab


@pytest.fixture
def node(cluster: Lab) -> Lab:
    """A cluster with one live GPU node, gpu-0."""
    cluster.start("kwok")
    cluster.load(fleet.nodes(1))
    cluster.admin.wait_for("nodes", "gpu-0", fleet.is_ready)
    return cluster


def run(lab: Lab, pod: Pod) -> Manifest:
    lab.admin.create(pod.on("gpu-0").manifest())
    return lab.admin.wait_for("pods", pod.name, fleet.is_running, pod.namespace)


def condition(pod: Manifest | None, kind: str) -> Manifest:
    conditions = (pod or {}).get("status", {}).get("conditions", ())
    return next((each for each in conditions if each["type"] == kind), {})


def resize(lab: Lab, name: str, cpu: str) -> Manifest:
    containers = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
    path = f"/api/v1/namespaces/default/pods/{name}/resize"
    return lab.admin.must("PATCH", path, {"spec": {"containers": containers}}, "application/strategic-merge-patch+json")


def cpu_in_use(pod: Manifest | None) -> str:
    statuses = (pod or {}).get("status", {}).get("containerStatuses", [{}])
    return str(statuses[0].get("resources", {}).get("requests", {}).get("cpu"))


def test_a_running_pod_says_what_its_containers_were_given(node: Lab) -> None:
    pod = run(node, Pod("p", gpus=1, cpu="250m"))
    (status,) = pod["status"]["containerStatuses"]
    assert status["resources"] == {
        "requests": {"cpu": "250m", "memory": "128Mi", "nvidia.com/gpu": "1"},
        "limits": {"nvidia.com/gpu": "1"},
    }
    assert status["allocatedResources"]["cpu"] == "250m"
    assert condition(pod, "Ready")["status"] == "True"


def test_a_pod_starts_when_it_was_told_to(node: Lab) -> None:
    started = time.monotonic()
    run(node, Pod("slow").starting_after("1500ms"))
    assert time.monotonic() - started >= 1.5


@pytest.mark.parametrize(("phase", "code"), [("Succeeded", 0), ("Failed", 1)])
def test_a_pod_ends_by_itself(node: Lab, phase: str, code: int) -> None:
    node.admin.create(Pod("short").ending(phase, after="300ms").on("gpu-0").manifest())
    ended = node.admin.wait_for("pods", "short", lambda pod: (pod or {})["status"].get("phase") == phase, "default")
    assert ended["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == code
    assert condition(ended, "Ready")["status"] == "False"


def test_a_deleted_pod_takes_the_time_it_was_told_to(node: Lab) -> None:
    run(node, Pod("slow").dying_slowly(4))
    run(node, Pod("quick"))
    started = time.monotonic()
    for name in ("slow", "quick"):
        node.admin.delete("pods", name, "default")
    node.admin.wait_for("pods", "quick", lambda pod: pod is None, "default")
    assert node.admin.get("pods", "slow", "default")
    node.admin.wait_for("pods", "slow", lambda pod: pod is None, "default")
    assert time.monotonic() - started > 3  # deletionTimestamp has whole seconds


def test_no_pod_outlives_its_grace_period(node: Lab) -> None:
    run(node, Pod("stubborn").dying_slowly(600, grace_seconds=2))
    node.admin.delete("pods", "stubborn", "default")
    node.admin.wait_for("pods", "stubborn", lambda pod: pod is None, "default")


def test_a_resize_is_enacted_after_a_while(node: Lab) -> None:
    run(node, Pod("elastic", cpu="1").resizing(after="700ms"))
    resize(node, "elastic", "3")
    under_way = node.admin.wait_for("pods", "elastic", lambda pod: condition(pod, "PodResizeInProgress"), "default")
    assert cpu_in_use(under_way) == "1"
    done = node.admin.wait_for("pods", "elastic", lambda pod: cpu_in_use(pod) == "3", "default")
    assert not condition(done, "PodResizeInProgress")
    assert done["status"]["containerStatuses"][0]["state"]["running"], "a resize restarts nothing"
    resize(node, "elastic", "2")
    node.admin.wait_for("pods", "elastic", lambda pod: cpu_in_use(pod) == "2", "default")


@pytest.mark.parametrize("answer", ["Deferred", "Infeasible"])
def test_a_resize_is_put_off_or_refused_on_demand(node: Lab, answer: str) -> None:
    run(node, Pod("elastic", cpu="1").resizing(answer, after="100ms"))
    resize(node, "elastic", "3")
    told = node.admin.wait_for("pods", "elastic", lambda pod: condition(pod, "PodResizePending"), "default")
    assert condition(told, "PodResizePending")["reason"] == answer
    assert cpu_in_use(told) == "1"
    path = node.admin.path("pods", "elastic", "default")
    node.admin.merge(path, {"metadata": {"annotations": {"lab/resize": None}}})
    done = node.admin.wait_for("pods", "elastic", lambda pod: cpu_in_use(pod) == "3", "default")
    assert not condition(done, "PodResizePending")


def test_a_resize_may_not_change_the_quality_of_service(node: Lab) -> None:
    run(node, Pod("plain", cpu="1"))
    with pytest.raises(Refused, match="QOS"):
        node.admin.must(
            "PATCH",
            "/api/v1/namespaces/default/pods/plain/resize",
            {"spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": "1", "memory": "128Mi"}}}]}},
            "application/strategic-merge-patch+json",
        )


def test_a_pod_is_left_pending_gated_or_unschedulable_as_it_was_made(node: Lab) -> None:
    node.start("scheduler")
    pods = [Pod("gated").gated("gpu.scheduling/capacity"), Pod("nowhere").nowhere(), Pod("unseen").unseen()]
    node.load(pod.manifest() for pod in pods)
    for name, reason in (("gated", "SchedulingGated"), ("nowhere", "Unschedulable")):
        pod = node.admin.wait_for("pods", name, lambda pod: condition(pod, "PodScheduled"), "default")
        assert condition(pod, "PodScheduled")["reason"] == reason
    assert not condition(node.admin.get("pods", "unseen", "default"), "PodScheduled")


def test_a_node_without_a_kubelet_is_never_ready(node: Lab) -> None:
    node.load(fleet.nodes(1, fleet.Shape(alive=False), prefix="dead"))
    assert not fleet.is_ready(node.admin.get("nodes", "dead-0"))
    assert fleet.is_ready(node.admin.get("nodes", "gpu-0"))
