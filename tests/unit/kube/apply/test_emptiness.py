"""A node that is to be empty: its pods are listed anew before it is deleted, every page of them."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from reconciler.kube.api_server import JSON, ApiRequest, ApiResponse
from reconciler.kube.apply.execute import Executor
from reconciler.kube.apply.fenced_writer import WriteLimits
from reconciler.model import names
from reconciler.model.cluster.pod import LONGEST_GRACE_SECONDS
from reconciler.model.instant import Instant, instant, timestamp
from reconciler.model.plan.decision import Decision, Delete, Outcome, Preconditions, Reason, Ref
from reconciler.plan.nodes.ownership import CordonedByOthers
from tests.unit.kube.apply.stage import Holding, refusal

Object = dict[str, Any]

NOW = instant("2026-11-02T10:00:00Z")
NODE = Ref("Node", "", "gpu-1", "uid-1")
DAEMON = {"kind": "DaemonSet", "name": "exporter", "uid": "u", "controller": True}


def pod(name: str, phase: str = "Running", **metadata: Any) -> Object:
    return {"metadata": {"name": name, "namespace": "team-a", **metadata}, "status": {"phase": phase}}


IDLE = [pod(f"exporter-{number}", ownerReferences=[DAEMON]) for number in range(2)] + [
    pod("agent", annotations={names.DAEMONSET_POD: "true"}),
    pod("done", "Succeeded"),
]


class NodeServer:
    """A node, and its pods two a page. Owner of what was sent and asked."""

    def __init__(self, pods: list[Object], refused: ApiResponse | None = None, ready: Object | None = None) -> None:
        self.pods, self.refused = pods, refused
        self.status = {"conditions": [{"type": "Ready", **ready}]} if ready else {}
        self.sent: list[ApiRequest] = []
        self.asked: list[Mapping[str, str]] = []

    def get(self, path: str, query: Mapping[str, str] | None = None, accept: str = JSON) -> ApiResponse:
        if path == "/api/v1/nodes/gpu-1":
            head = {"name": "gpu-1", "uid": "uid-1", "resourceVersion": "7"}
            return _answer({"metadata": head, "status": self.status})
        assert path == "/api/v1/pods"
        asked = dict(query or {})
        self.asked.append(asked)
        if self.refused:
            return self.refused
        start = int(asked.get("continue", 0))
        more = {"continue": str(start + 2)} if start + 2 < len(self.pods) else {}
        return _answer({"kind": "PodList", "metadata": more, "items": self.pods[start : start + 2]})

    def send(self, request: ApiRequest) -> ApiResponse:
        self.sent.append(request)
        return ApiResponse(200, b"{}")

    @property
    def deleted(self) -> list[Object]:
        return [msgspec.json.decode(each.body)["preconditions"] for each in self.sent if each.method == "DELETE"]


def _answer(body: Object) -> ApiResponse:
    return ApiResponse(200, msgspec.json.encode(body))


def given_back(
    server: NodeServer, version: str = "7", empty: bool = True, longest_grace_seconds: int = LONGEST_GRACE_SECONDS
) -> Outcome:
    presumes = Preconditions(resource_version=version, empty=empty, longest_grace_seconds=longest_grace_seconds)
    act = Delete(presumes=presumes)
    decision = Decision("tests", NODE, act, Reason(CordonedByOthers(node="gpu-1")))
    limits = WriteLimits(pause=lambda _: None, writes_per_second=1e6, wall_clock=lambda: NOW / 1_000)
    (outcome,) = Executor(server, limits=limits).apply([decision], Holding())
    return outcome


STUCK = {
    "a minute after its grace": ("Unknown", "09:58:30", 30, "done"),
    "before that": ("Unknown", "09:58:31", 30, "stale"),
    "of a node that is not ready": ("False", "09:58:30", 30, "done"),
    "of a node that is ready": ("True", "09:58:30", 30, "stale"),
    "that asks for a longer grace": ("Unknown", "09:58:30", 31, "stale"),
    "that says nothing of its grace": ("Unknown", "09:58:30", None, "done"),
}


@pytest.mark.parametrize(("status", "since", "grace", "result"), STUCK.values(), ids=STUCK)
def test_a_pod_that_stays_terminating_keeps_its_node(status: str, since: str, grace: int | None, result: str) -> None:
    """Both the pod and the node for a minute and the grace period of the pod."""
    at, long_ago = f"2026-11-02T{since}Z", "2026-11-02T08:00:00Z"
    for deleted, turned in ((at, long_ago), (long_ago, at)):
        gone = pod("train", deletionTimestamp=deleted) | {"spec": {"terminationGracePeriodSeconds": grace}}
        server = NodeServer([*IDLE, gone], ready={"status": status, "lastTransitionTime": turned})
        assert given_back(server).result == result
        both = NodeServer([gone, pod("new")], ready={"status": status, "lastTransitionTime": turned})
        assert given_back(both).detail.startswith("Node/gpu-1 was expected to be empty, but has Pod/team-a/new")


@pytest.mark.parametrize(("deleted", "result"), [("09:38:59", "done"), ("09:39:01", "stale")])
def test_of_a_grace_of_ten_years_no_more_is_believed_than_the_decision_says(deleted: str, result: str) -> None:
    """Ten minutes until it was to have ended, as long again, and a minute."""
    year = 365 * 24 * 3_600
    ends = timestamp(Instant(instant(f"2026-11-02T{deleted}Z") + 10_000 * year))
    gone = pod("train", deletionTimestamp=ends, deletionGracePeriodSeconds=10 * year)
    gone |= {"spec": {"terminationGracePeriodSeconds": 10 * year}}
    unready = {"status": "Unknown", "lastTransitionTime": "2026-11-02T08:00:00Z"}
    assert given_back(NodeServer([*IDLE, gone], ready=unready), longest_grace_seconds=600).result == result
    is_ready = unready | {"status": "True"}
    assert given_back(NodeServer([*IDLE, gone], ready=is_ready), longest_grace_seconds=600).result == "stale"


def test_an_empty_node_is_deleted_as_it_was_seen_once_all_its_pods_were_looked_at() -> None:
    server = NodeServer(IDLE)
    assert given_back(server).result == "done"
    assert server.deleted == [{"uid": "uid-1", "resourceVersion": "7"}]
    pages = [each.get("continue", "") for each in server.asked]
    assert pages == ["", "2"]
    assert all(each["fieldSelector"] == "spec.nodeName=gpu-1" for each in server.asked)
    assert not any("resourceVersion" in each for each in server.asked)


@pytest.mark.parametrize("at", range(len(IDLE) + 1))
def test_a_pod_on_any_page_keeps_the_node(at: int) -> None:
    server = NodeServer([*IDLE[:at], pod("train"), *IDLE[at:]])
    outcome = given_back(server)
    told = (outcome.result, outcome.detail)
    assert told == ("stale", "Node/gpu-1 was expected to be empty, but has Pod/team-a/train")
    assert not server.sent


def test_where_pods_can_not_be_listed_nothing_is_deleted() -> None:
    server = NodeServer(IDLE, refusal(403, "Forbidden", "pods is forbidden"))
    assert given_back(server).result == "refused"
    assert not server.sent


def test_a_node_that_changed_is_not_deleted_however_empty_it_is() -> None:
    server = NodeServer(IDLE)
    assert given_back(server, version="6").result == "stale"
    assert not server.sent


def test_without_that_presumption_nobody_lists_pods() -> None:
    server = NodeServer([pod("train")])
    assert given_back(server, empty=False).result == "done"
    assert not server.asked


def test_nothing_is_waited_for_between_the_look_at_its_pods_and_the_deletion() -> None:
    server = NodeServer(IDLE)
    happened: list[tuple[int, int]] = []  # pages that were asked for and writes that were sent, at each pause
    limits = WriteLimits(pause=lambda _: happened.append((len(server.asked), len(server.sent))), burst=0)
    act = Delete(presumes=Preconditions(empty=True))
    decision = Decision("tests", NODE, act, Reason(CordonedByOthers(node="gpu-1")))
    (outcome,) = Executor(server, limits=limits).apply([decision], Holding())
    assert outcome.result == "done"
    assert set(happened) == {(0, 0)}
