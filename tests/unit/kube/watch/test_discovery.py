"""Where each kind is served, from what an API server says it serves."""

import contextlib
import json
import threading
from collections.abc import Mapping

import pytest

from reconciler.kube.api_server import JSON, ApiResponse, Stream, Unreachable
from reconciler.kube.watch.changes import Identity, ListEnding, ListFailed
from reconciler.kube.watch.discovery import Discovery, identity, served
from reconciler.model.cluster.kinds import RESOURCE_KINDS, ResourceKind

BY_KIND = {each.kind: each for each in reversed(RESOURCE_KINDS)} | {
    each.title: each for each in RESOURCE_KINDS if each.field == "leases"
}


def group(name: str, *versions: str, fresh: str = "Current", **resources: tuple[str, ...]) -> dict[str, object]:
    """A group, and which resources it has in which versions."""
    told = [
        {
            "version": version,
            "freshness": fresh,
            "resources": [{"resource": each, "scope": "Cluster"} for each, its in resources.items() if version in its],
        }
        for version in versions
    ]
    return {"metadata": {"name": name} if name else {"creationTimestamp": None}, "versions": told}


def told(*groups: dict[str, object]) -> ApiResponse:
    return ApiResponse(200, json.dumps({"kind": "APIGroupDiscoveryList", "items": groups}).encode())


CORE = told(group("", "v1", nodes=("v1",), pods=("v1",)))
APIS = told(
    group("karpenter.sh", "v1", "v1beta1", nodepools=("v1", "v1beta1"), nodeclaims=("v1beta1",)),
    group("karpenter.k8s.aws", "v1", "v1beta1", ec2nodeclasses=("v1", "v1beta1")),
    group("resource.k8s.io", "v1", "v1beta2", resourceclaims=("v1", "v1beta2"), resourceslices=("v1beta2",)),
    group("coordination.k8s.io", "v1", leases=("v1",)),
    group("gpu.scheduling", "v1", fresh="Stale"),
)
SERVED = served({"/api": CORE, "/apis": APIS})


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("Node", "/api/v1/nodes"),
        ("leases.coordination.k8s.io of the controller", "/apis/coordination.k8s.io/v1/namespaces/gpu-system/leases"),
        ("leases.coordination.k8s.io", "/apis/coordination.k8s.io/v1/namespaces/gpu-leases/leases"),
        ("NodePool", "/apis/karpenter.sh/v1/nodepools"),
        ("EC2NodeClass", "/apis/karpenter.k8s.aws/v1/ec2nodeclasses"),
        ("ResourceClaim", "/apis/resource.k8s.io/v1/resourceclaims"),
        ("ResourceSlice", "/apis/resource.k8s.io/v1beta2/resourceslices"),
    ],
)
def test_the_path_of_a_kind_is_in_the_preferred_version_that_has_it(kind: str, path: str) -> None:
    assert SERVED.path(BY_KIND[kind], "gpu-system") == path


@pytest.mark.parametrize(
    ("kind", "what", "why"),
    [
        ("KWOKNodeClass", ListEnding.NOT_SERVED, "the cluster serves no kwoknodeclasses.karpenter.kwok.sh"),
        ("NodeClaim", ListEnding.UNSUITED, "is served as v1beta1 and not as v1, the only supported version"),
        ("Job", ListEnding.UNSUITED, "the cluster serves no jobs.batch, which every cluster must serve"),
        ("GpuPool", ListEnding.FAILED, "the API server cannot discover the group gpu.scheduling"),
    ],
)
def test_what_is_not_there_is_absent_only_where_that_is_an_answer(kind: str, what: ListEnding, why: str) -> None:
    with pytest.raises(ListFailed) as setback:
        SERVED.path(BY_KIND[kind], "gpu-system")
    assert (setback.value.outcome.ending, setback.value.outcome.why) == (what, why)


@pytest.mark.parametrize(
    ("answer", "what", "why"),
    [
        (ApiResponse(403), ListEnding.FORBIDDEN, "may not read /api: bind the identity to the role system:discovery"),
        (ApiResponse(406), ListEnding.FAILED, "Kubernetes 1.26 or newer is required"),
        (
            ApiResponse(200, b'{"kind": "APIVersions", "versions": ["v1"]}'),
            ListEnding.FAILED,
            "1.26 or newer is required",
        ),
        (ApiResponse(200, b"<html>"), ListEnding.FAILED, "/api has no valid response"),
        (ApiResponse(503, b'{"message": "not ready"}'), ListEnding.FAILED, "failed: 503: not ready"),
    ],
)
def test_an_answer_that_tells_nothing_is_a_setback(answer: ApiResponse, what: ListEnding, why: str) -> None:
    with pytest.raises(ListFailed) as setback:
        served({"/api": answer, "/apis": APIS})
    assert setback.value.outcome.ending is what
    assert why in setback.value.outcome.why


class Told:
    """An API server with these answers, that counts what it is asked."""

    def __init__(self, answers: Mapping[str, ApiResponse]) -> None:
        self.answers = answers
        self.asked: list[str] = []
        self.may_answer = threading.Event()
        self.may_answer.set()

    def get(self, path: str, query: Mapping[str, str] | None = None, accept: str = JSON) -> ApiResponse:
        self.asked.append(path)
        assert self.may_answer.wait(10)
        if path not in self.answers:
            raise Unreachable("no answer", "none")
        return self.answers[path]

    def stream(self, path: str, query: Mapping[str, str], silence_seconds: float) -> "contextlib.nullcontext[Stream]":
        raise AssertionError("nothing is watched here")

    def apart(self) -> "Told":
        return self

    def close(self) -> None:
        """Nothing is open."""


def test_one_asking_is_enough_for_all_kinds() -> None:
    server = Told({"/api": CORE, "/apis": APIS})
    discovery = Discovery(server, "gpu-system")
    assert {discovery.path(BY_KIND[kind], 60) for kind in ("Node", "Pod", "NodePool")}
    assert server.asked == ["/api", "/apis"]
    discovery.path(BY_KIND["Node"], 0)
    assert server.asked == ["/api", "/apis"] * 2


def test_a_failure_is_shared_by_those_who_waited_for_it_and_nobody_else() -> None:
    server = Told({})
    discovery = Discovery(server, "gpu-system")
    failed: list[str] = []

    def look(seen: ResourceKind) -> None:
        try:
            discovery.path(seen, 60)
        except Unreachable:
            failed.append(seen.kind)

    server.may_answer.clear()
    threads = [threading.Thread(target=look, args=[each]) for each in RESOURCE_KINDS]
    for thread in threads:
        thread.start()
    server.may_answer.set()
    for thread in threads:
        thread.join(10)
    assert len(failed) == len(RESOURCE_KINDS)
    before = len(server.asked)
    look(RESOURCE_KINDS[0])
    assert len(server.asked) == before + 1


def test_the_cluster_is_known_by_its_kube_system() -> None:
    at = "/api/v1/namespaces/kube-system"
    assert identity(Told({at: ApiResponse(200, b'{"metadata": {"uid": "u"}}')})) == Identity("u")
    assert "may not get kube-system" in identity(Told({at: ApiResponse(403)})).why
    for answer in (ApiResponse(500), ApiResponse(200, b"<html>"), ApiResponse(200, b'{"metadata": {}}')):
        with pytest.raises(ListFailed):
            identity(Told({at: answer}))
