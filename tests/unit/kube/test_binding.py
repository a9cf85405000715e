"""Bindings with Leases: how often the API server is asked, and that only the first attempt relies on earlier reads."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from reconciler.kube.api_server import JSON, ApiRequest, ApiResponse
from reconciler.kube.apply.fenced_writer import WriteLimits
from reconciler.kube.binding import PodBinder
from reconciler.model.plan.decision import Bind, LentDevice, Ref
from tests import builders

POD = Ref("Pod", "default", "train", "uid-train")
NODE = builders.node("node-a", gpus=8, uid="uid-node-a")
LIMITS = WriteLimits(attempts=3, pause=lambda _: None)


class Server:
    """An API server with one pod and one node; `conflicts` Bindings are refused as made for an earlier version."""

    def __init__(self, conflicts: int = 0) -> None:
        self.requests: list[str] = []
        self.bodies: list[Any] = []
        self._conflicts, self._version = conflicts, 1

    def get(self, path: str, query: Mapping[str, str] | None = None, accept: str = JSON) -> ApiResponse:
        self.requests.append(f"GET {path.rpartition('/')[2]}")
        metadata = {"name": "train", "namespace": "default", "uid": "uid-train", "resourceVersion": str(self._version)}
        if path.endswith("/node-a"):
            return found({"kind": "Node", "metadata": {"name": "node-a", "uid": "uid-read"}})
        if path.endswith("/train"):
            return found({"kind": "Pod", "metadata": metadata, "spec": {"containers": []}, "status": {}})
        return found({"metadata": {"uid": "u", "resourceVersion": "1"}, "spec": {"holderIdentity": "uid-train"}})

    def send(self, request: ApiRequest) -> ApiResponse:
        last = request.path.rpartition("/")[2]
        self.requests.append(f"{request.method} {last}")
        body = msgspec.json.decode(request.body)
        self.bodies.append(body)
        if last == "binding" and self._conflicts:
            self._conflicts, self._version = self._conflicts - 1, self._version + 1
            return ApiResponse(409, b'{"reason": "Conflict"}')
        if last == "leases" and self.requests.count("POST leases") > 2:
            return ApiResponse(409, b'{"reason": "AlreadyExists"}')
        return found({"metadata": {"uid": "u", "resourceVersion": "1"}})


def found(body: Any) -> ApiResponse:
    return ApiResponse(200, msgspec.json.encode(body))


def bound(server: Server) -> str:
    binder = PodBinder(server, limits=LIMITS)
    read = binder.read(POD)
    assert read is not None
    leases = tuple(LentDevice(f"gpu-node-a-{device}", device) for device in range(2))
    return binder.bind(POD, Bind(node="node-a", leases=leases, annotations=()), read, NODE).written.result


def test_a_pod_is_read_once_and_its_node_not_at_all() -> None:
    server = Server()
    assert bound(server) == "done"
    assert server.requests == ["GET train", "POST leases", "POST leases", "POST binding"]
    owners = [body["metadata"]["ownerReferences"][0]["uid"] for body in server.bodies[:2]]
    assert owners == ["uid-node-a", "uid-node-a"]
    assert server.bodies[-1]["metadata"]["resourceVersion"] == "1"


@pytest.mark.parametrize("conflicts", [1, 2])
def test_each_retry_reads_the_pod_and_the_node_again(conflicts: int) -> None:
    server = Server(conflicts)
    assert bound(server) == "done"
    assert server.requests.count("GET train") == server.requests.count("GET node-a") + 1 == 1 + conflicts
    versions = [body["metadata"]["resourceVersion"] for body in server.bodies if body.get("kind") == "Binding"]
    assert versions == [str(1 + each) for each in range(conflicts + 1)]
