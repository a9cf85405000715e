"""The scheduler extender of a replica: its answers, and what becomes of reservations after each end of a Binding."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from reconciler.controller import extender
from reconciler.controller.extender import SchedulerExtender
from reconciler.fleet.obstacles import TooFewFreeGpus
from reconciler.kube.api_server import ApiRequest, ApiResponse, Unreachable
from reconciler.kube.binding import BindResult, LivePod, PodBinder
from reconciler.model.cluster.metadata import Annotations, Condition, Metadata
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.decision import Bind, Ref
from reconciler.ports import Unavailable
from reconciler.protocol.extender import (
    AskingPod,
    AskingPodSpec,
    BindRequest,
    FilterRequest,
    NodeScore,
    Nomination,
    PreemptRequest,
    Victim,
    Victims,
)
from reconciler.protocol.preconditions import WriteResult
from reconciler.serve.extender import NotReady
from tests.unit.protocol.desk_stage import TEAM, Cluster, board_of, claim, lease, node, pod, report

REQUEST = BindRequest("p0", TEAM, "uid-p0", "n0")


class NoServer:
    """A Writer that is never asked."""

    def get(self, *_: Any, **__: Any) -> ApiResponse:
        raise Unreachable("never asked", "")

    def send(self, request: ApiRequest) -> ApiResponse:
        raise Unreachable("never asked", "")


class Binder(PodBinder):
    """A PodBinder with the pod and the result that a test says."""

    def __init__(self, found: Pod | None, result: str = "done") -> None:
        super().__init__(NoServer())
        self.found, self.result = found, result
        self.bound: list[Bind] = []

    def read(self, ref: Ref) -> LivePod | None:
        if self.result == "unreadable":
            raise Unavailable("the API server is away")
        return LivePod(self.found, {}) if self.found is not None else None

    def bind(self, pod: Ref, bind: Bind, read: LivePod, node: Node | None = None) -> BindResult:
        self.bound.append(bind)
        return BindResult(WriteResult(self.result, "" if self.result == "done" else "no luck"))  # type: ignore[arg-type]


def ready() -> Cluster:
    """One node of four GPUs, and two claims of four."""
    cluster = Cluster().put(node("n0"), report("n0", board_of("n0")))
    for number in range(2):
        cluster.put(claim(f"c{number}", count=4), pod(f"p{number}", f"c{number}"))
    return cluster


def is_free(cluster: Cluster) -> bool:
    return not isinstance(cluster.desk.answers((TEAM, "c1"), ["n0"])["n0"].obstacle, TooFewFreeGpus)


def bound(cluster: Cluster, binder: Binder, request: BindRequest = REQUEST, wait_seconds: float = 0.0) -> str:
    async def story() -> str:
        served = SchedulerExtender(cluster.desk, binder)
        answer = await served.bind(request)
        await asyncio.sleep(wait_seconds)
        served.close()
        return answer.error

    return asyncio.run(story())


@pytest.mark.parametrize(
    ("result", "is_answered", "stays"),
    [("done", True, True), ("unknown", False, True), ("refused", False, False), ("conflict", False, False)],
)
def test_after_a_definite_failure_the_gpus_are_free_at_once(result: str, is_answered: bool, stays: bool) -> None:
    cluster = ready()
    binder = Binder(cluster.pods["p0"], result)
    error = bound(cluster, binder)
    assert (error == "") is is_answered
    assert len(binder.bound[0].leases) == 4
    assert is_free(cluster) is not stays


@pytest.mark.parametrize("has_lease", [False, True])
def test_after_an_unknown_effect_the_gpus_are_free_once_no_lease_can_come(
    has_lease: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extender, "UNKNOWN_SECONDS", 0.01)
    cluster = ready()
    if has_lease:
        cluster.put(lease("n0", 0, "uid-p0"))
        cluster.drop(cluster.claims["c0"])
        cluster.put(claim("c0", count=1))
    bound(cluster, Binder(cluster.pods["p0"], "unknown"), wait_seconds=0.1)
    assert is_free(cluster) is not has_lease
    assert len(cluster.desk.reservations) == int(has_lease)


def test_a_later_reservation_of_the_same_pod_is_not_given_up_for_an_earlier_one() -> None:
    cluster = ready()
    first = cluster.desk.reserve(cluster.pods["p0"], "n0")
    cluster.desk.end_reservation(first)  # type: ignore[arg-type]
    second = cluster.desk.reserve(cluster.pods["p0"], "n0")
    cluster.desk.give_up(first)  # type: ignore[arg-type]
    assert cluster.desk.reservations == (second,)
    cluster.desk.give_up(second)  # type: ignore[arg-type]
    assert is_free(cluster)


FAILURES: dict[str, tuple[Callable[[Cluster], Binder], str]] = {
    "the API server is away": (lambda it: Binder(it.pods["p0"], "unreadable"), "the API server is away"),
    "the pod is gone": (lambda _: Binder(None), "no longer exists"),
    "the pod is bound elsewhere": (lambda _: Binder(pod("p0", "c0", "n9")), "Node/n9"),
    "the claim cannot be served": (lambda it: Binder(it.put(lease("n0", 1, "uid-x")).pods["p0"]), "GPU"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_is_an_answer_and_nothing_is_written(name: str) -> None:
    cluster = ready()
    make, words = FAILURES[name]
    binder = make(cluster)
    assert words in bound(cluster, binder)
    assert binder.bound == []
    assert cluster.desk.reservations == ()


def test_a_pod_that_is_bound_to_the_node_already_is_done() -> None:
    cluster, binder = ready(), Binder(pod("p0", "c0", "n0"))
    assert bound(cluster, binder) == ""
    assert binder.bound == []


def test_a_pod_without_a_claim_is_bound_without_gpus() -> None:
    cluster, binder = ready(), Binder(pod("p0", ""))
    assert bound(cluster, binder) == ""
    assert binder.bound == [Bind(node="n0", leases=(), annotations=())]


# --- Questions.


def asking(claim_name: str, *, prefers: bool = False) -> AskingPod:
    soft = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}}
    metadata = Metadata("p", TEAM, annotations=Annotations(claim=claim_name))
    return AskingPod(metadata, AskingPodSpec(soft if prefers else {}))


def three() -> tuple[Cluster, SchedulerExtender]:
    """Two equal nodes, and one of which half is lent."""
    cluster = Cluster().put(claim("c0", count=1))
    for name in ("n0", "n1", "n2"):
        cluster.put(node(name), report(name, board_of(name)))
    cluster.put(lease("n2", 0, "uid-x"), lease("n2", 1, "uid-x"))
    return cluster, SchedulerExtender(cluster.desk, Binder(None))


def test_filter_passes_the_best_node_and_several_only_if_the_pod_prefers_some() -> None:
    cluster, served = three()
    assert served.filter(FilterRequest(asking("c0"), ["n0", "n1", "n2"])).node_names == ["n2"]
    cluster.drop(cluster.nodes["n2"])
    assert served.filter(FilterRequest(asking("c0"), ["n0", "n1", "n2"])).node_names == ["n0"]
    assert served.filter(FilterRequest(asking("c0", prefers=True), ["n0", "n1"])).node_names == ["n0", "n1"]


def test_prioritize_gives_the_best_nodes_the_highest_score() -> None:
    _, served = three()
    found = served.prioritize(FilterRequest(asking("c0"), ["n0", "n1", "n2", "n9"]))
    assert found == [NodeScore("n0", 9), NodeScore("n1", 9), NodeScore("n2", 10), NodeScore("n9", 0)]


def test_preempt_keeps_nodes_that_serve_the_claim_without_the_victims() -> None:
    cluster, served = three()
    cluster.put(claim("c0", count=4))
    victims = {name: Victims([Victim("uid-x")]) for name in ("n2", "n9")}
    found = served.preempt(PreemptRequest(asking("c0"), victims | {"n0": Victims()}))
    assert found.node_name_to_meta_victims == {"n2": victims["n2"], "n0": Victims()}
    spared = {"n2": Victims([Victim("uid-y")])}
    assert served.preempt(PreemptRequest(asking("c0"), spared)).node_name_to_meta_victims == {}


def test_nobody_is_preempted_while_gpus_are_about_to_be_released(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, served = three()
    cluster.put(claim("c0", count=4), lease("n0", 0, "uid-y"), lease("n1", 0, "uid-y"), pod("y", "held", "n0"))
    cluster.put(node("n9", conditions=(Condition("Ready", "True"),)), report("n9", board_of("n9")))
    cluster.put(pod("victim", "held", "n9", deletion_timestamp="2026-01-01T00:00:00Z"), lease("n9", 0, "uid-victim"))
    victims = {"n0": Victims([Victim("uid-y")])}
    asks = msgspec.structs.replace(asking("c0"), metadata=Metadata("p", TEAM, "u", annotations=Annotations(claim="c0")))
    nominated = msgspec.structs.replace(asks, status=Nomination("n9"))

    def offered(pod: AskingPod) -> object:
        return served.preempt(PreemptRequest(pod, victims)).node_name_to_meta_victims

    assert (offered(asks), offered(nominated)) == (victims, {})
    cluster.drop(cluster.pods["victim"])
    assert (offered(asks), offered(nominated)) == (victims, {}), "this replica was not asked whether n9 has GPUs"
    assert served.filter(FilterRequest(asks, ["n2"])).failed_nodes.keys() == {"n2"}
    assert (offered(asks), offered(nominated)) == (victims, victims), "kube-scheduler excludes n9"
    assert served.filter(FilterRequest(asks, ["n2", "n9"])).failed_nodes.keys() == {"n2", "n9"}
    assert (offered(asks), offered(nominated)) == ({}, {})
    assert offered(asking("c0")) == victims, "another pod was refused"
    cluster.drop(cluster.leases["gpu-n9-0"])
    assert (offered(asks), offered(nominated)) == ({}, {}), "n9 serves the claim now: it need only be asked about again"
    monkeypatch.setattr(extender, "RELEASE_SECONDS", 0.0)
    assert (offered(asks), offered(nominated)) == (victims, victims)


def test_pods_without_a_claim_pass() -> None:
    _, served = three()
    request = FilterRequest(asking(""), ["n0", "n9"])
    assert served.filter(request).node_names == ["n0", "n9"]
    assert served.prioritize(request) == [NodeScore("n0", 0), NodeScore("n9", 0)]
    everything = {"n9": Victims()}
    assert served.preempt(PreemptRequest(asking(""), everything)).node_name_to_meta_victims == everything


def test_before_the_cluster_was_read_the_answer_is_an_error_and_no_refusal() -> None:
    cluster, served = three()
    cluster.desk.is_read = False
    answer = served.filter(FilterRequest(asking("c0"), ["n0"]))
    assert "has not been read" in answer.error
    assert "has not been read" in served.why_unready
    with pytest.raises(NotReady, match="has not been read"):
        served.preempt(PreemptRequest(asking("c0"), {"n0": Victims([Victim("uid-y")])}))
    assert not answer.failed_nodes
    assert "has not been read" in bound(cluster, Binder(pod("p0", "c0")))
