"""Free cpu and memory of nodes decide which node is the best for a pod, and never which nodes can serve its claim."""

from typing import Any

import msgspec
import pytest

from reconciler.fleet.devices.node_room import PodRequest
from reconciler.fleet.devices.ranking import NodeRank
from reconciler.model import names
from reconciler.model.cluster.pod import Pod
from reconciler.protocol.desk import Reservation
from reconciler.protocol.extender import FilterRequest
from tests import builders
from tests.unit.protocol.desk_stage import TEAM, Cluster, board_of, claim, lease, node, pod, report

HAS = {"cpu": "32", "memory": "256Gi"}
EIGHT = {"cpu": "8", "memory": "64Gi"}


def asks(name: str, requests: dict[str, str], node_name: str = "") -> Pod:
    built = builders.pod(name, asks=requests)
    return pod(name, "one", node_name, containers=built.spec.containers)


def cluster_of(*names_of_nodes: str, waiting: int = 8) -> Cluster:
    """Equal nodes, and pods that wait for one GPU and eight cpus each."""
    cluster = Cluster().put(claim("one"))
    for name in names_of_nodes:
        cluster.put(node(name, has=HAS), report(name, board_of(name)))
    for number in range(waiting):
        cluster.put(asks(f"waits-{number}", EIGHT))
    cluster.desk.look_at_mix()
    return cluster


def ranks(cluster: Cluster, request: PodRequest) -> dict[str, NodeRank | None]:
    return {
        name: each.rank for name, each in cluster.desk.answers((TEAM, "one"), cluster.nodes, "asks", request).items()
    }


def best(cluster: Cluster, request: PodRequest) -> list[str]:
    found = {name: rank for name, rank in ranks(cluster, request).items() if rank is not None}
    return sorted(name for name, rank in found.items() if rank == min(found.values()))


TAKES = builders.pod("other", asks={"cpu": "30"}, node_name="a", uid="other")


def test_a_pod_without_cpu_gets_the_gpus_that_no_pod_with_cpu_can_use() -> None:
    cluster = cluster_of("a", "b").put(TAKES)
    assert best(cluster, PodRequest()) == ["a"]
    assert all(rank is not None for rank in ranks(cluster, PodRequest(99_000)).values())


ENDS: dict[str, Any] = {
    "the pod is gone": lambda cluster: cluster.drop(TAKES),
    "the pod is finished": lambda cluster: cluster.put(
        builders.pod("other", asks={"cpu": "30"}, node_name="a", uid="other", phase="Succeeded")
    ),
    "the pod was made smaller": lambda cluster: cluster.put(
        builders.pod("other", asks={"cpu": "0"}, node_name="a", uid="other")
    ),
    "the node is larger": lambda cluster: cluster.put(node("a", has={"cpu": "62", "memory": "256Gi"})),
}


@pytest.mark.parametrize("name", ENDS)
def test_the_nodes_are_alike_again_once(name: str) -> None:
    cluster = cluster_of("a", "b").put(TAKES)
    assert best(cluster, PodRequest()) == ["a"]
    ENDS[name](cluster)
    assert best(cluster, PodRequest()) == ["a", "b"]


def test_a_reservation_takes_cpu_as_the_bound_pod_does() -> None:
    reserving, observing = cluster_of("a", "b"), cluster_of("a", "b")
    request = PodRequest(8_000, 64 * 2**30)
    reservation = reserving.desk.reserve(reserving.pods["waits-0"], "a")
    assert isinstance(reservation, Reservation)
    (lent,) = reservation.bind.leases
    observing.put(lease("a", lent.device, "uid-waits-0", lent.uuid), asks("waits-0", EIGHT, "a"))
    assert ranks(reserving, request) == ranks(observing, request)
    reserving.desk.end_reservation(reservation)
    assert ranks(reserving, request) == ranks(cluster_of("a", "b"), request)


def test_what_a_pod_has_reserved_is_free_for_the_same_pod() -> None:
    cluster = cluster_of("a", "b")
    cluster.desk.reserve(cluster.pods["waits-0"], "a")
    request = PodRequest(8_000, 64 * 2**30)
    found = cluster.desk.answers((TEAM, "one"), ["a", "b"], "uid-waits-0", request)
    assert found["a"].rank == found["b"].rank


# --- What a pod in the body of a question requests.

POD_SPECS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "one container": {"containers": [{"name": "m", "resources": {"requests": {"cpu": "1500m", "memory": "1Gi"}}}]},
    "limits without requests": {"containers": [{"name": "m", "resources": {"limits": {"cpu": "2", "memory": "1Gi"}}}]},
    "init containers, sidecars and overhead": {
        "initContainers": [
            {"name": "i", "resources": {"requests": {"cpu": "6"}}},
            {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
        ],
        "containers": [{"name": "m", "resources": {"requests": {"cpu": "4"}}}, {"name": "n"}],
        "overhead": {"cpu": "250m", "memory": "64Mi"},
    },
    "resources of the pod": {"resources": {"requests": {"cpu": "3"}}, "containers": [{"name": "m"}]},
}


@pytest.mark.parametrize("name", POD_SPECS)
def test_the_asking_pod_requests_what_the_observed_pod_requests(name: str) -> None:
    metadata = {"name": "p", "namespace": "default", "uid": "p", "annotations": {names.CLAIM: "one"}}
    body = {"metadata": metadata, "spec": {"affinity": {"nodeAffinity": {}}, **POD_SPECS[name]}}
    asking = msgspec.convert({"Pod": body, "NodeNames": []}, FilterRequest).pod
    assert PodRequest.of(asking.pod) == PodRequest.of(msgspec.convert(body, Pod))
    assert (PodRequest.of(asking.pod) == PodRequest()) is (name == "nothing")
