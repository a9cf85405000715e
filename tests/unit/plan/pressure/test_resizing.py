"""Resizes of elastic pods: the first container gets what the permit leaves beside the other containers."""

from typing import Any

import msgspec
import pytest

from reconciler.model.cluster.metadata import Condition
from reconciler.model.cluster.pod import Container, Pod, ResourceRequirements
from reconciler.model.plan.decision import Decision, Hold, Resize
from reconciler.model.plan.pressure import ElasticPod
from reconciler.plan.pressure.resize_reasons import PermitBelowOthers, ResizePending
from reconciler.plan.pressure.resizing import resizes
from tests.unit.protocol.pressure_stage import elastic

GI = 2**30
UID = "uid-a"


def decided(permitted: dict[str, int], pod: Pod | None = None, **entry: Any) -> list[Decision]:
    """For a pod that requests 2 cpus and 4 Gi."""
    pod = pod or elastic("a", "n0")
    has = {"cpu": 2_000, "memory": 4 * GI}
    known = ElasticPod(UID, "team/a", has, has, has, permitted=permitted, **entry)
    return list(resizes({UID: known}, {UID: pod}, "pool"))


def resized(permitted: dict[str, int], pod: Pod | None = None) -> dict[str, int]:
    (decision,) = decided(permitted, pod)
    assert isinstance(decision.act, Resize)
    assert (decision.subject.uid, decision.pool) == (UID, "pool")
    return dict(decision.act.resources)


def test_a_pod_is_resized_to_its_permit() -> None:
    assert resized({"cpu": 3_000, "memory": 8 * GI}) == {"cpu": 3_000, "memory": 8 * GI * 1_000}
    assert resized({"cpu": 250, "memory": 4 * GI}) == {"cpu": 250}


def test_other_containers_and_the_overhead_keep_their_part() -> None:
    sidecar = Container("sidecar", ResourceRequirements({"cpu": "500m", "memory": "1Gi"}))
    pod = elastic("a", "n0", overhead={"cpu": "100m"})
    spec = msgspec.structs.replace(pod.spec, containers=(*pod.spec.containers, sidecar))
    pod = msgspec.structs.replace(pod, spec=spec)
    assert resized({"cpu": 3_000, "memory": 5 * GI}, pod) == {"cpu": 2_400}


def test_a_permit_that_leaves_nothing_for_the_first_container_is_held() -> None:
    sidecar = Container("sidecar", ResourceRequirements({"cpu": "500m"}))
    pod = elastic("a", "n0")
    pod = msgspec.structs.replace(
        pod, spec=msgspec.structs.replace(pod.spec, containers=(*pod.spec.containers, sidecar))
    )
    (decision,) = decided({"cpu": 500}, pod)
    assert isinstance(decision.act, Hold)
    assert isinstance(decision.reason.facts, PermitBelowOthers)


LEFT_ALONE: dict[str, tuple[dict[str, int], Pod, dict[str, Any]]] = {
    "a pod that has its permit": ({"cpu": 2_000, "memory": 4 * GI}, elastic("a", "n0"), {}),
    "a silent pod": ({"cpu": 3_000}, elastic("a", "n0"), {"is_silent": True}),
    "a pod that is being deleted": (
        {"cpu": 3_000},
        elastic("a", "n0", deletion_timestamp="2026-01-01T00:00:00Z"),
        {},
    ),
    "a pod that does not run yet": ({"cpu": 3_000}, elastic("a", "n0", phase="Pending"), {}),
    "a resource that cannot be resized": ({"cpu": 2_000, "example.com/part": 5}, elastic("a", "n0"), {}),
}


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_left_alone_is(name: str) -> None:
    permitted, pod, entry = LEFT_ALONE[name]
    assert decided(permitted, pod, **entry) == []


def test_an_unobserved_pod_is_left_alone() -> None:
    has = {"cpu": 2_000}
    assert list(resizes({UID: ElasticPod(UID, "team/a", has, has, has, permitted={"cpu": 3_000})}, {}, "pool")) == []


@pytest.mark.parametrize("why", ["Deferred", "Infeasible"])
def test_a_resize_that_the_kubelet_has_not_carried_out_is_told_and_not_repeated(why: str) -> None:
    pod = elastic("a", "n0", cpu="3", conditions=(Condition("PodResizePending", "True", why),))
    (decision,) = decided({"cpu": 3_000, "memory": 4 * GI}, pod)
    assert isinstance(decision.act, Hold)
    assert decision.reason.facts == ResizePending(decision.subject, "n0", why)
