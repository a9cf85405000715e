"""No name, namespace or kind, wherever it came from, leads a request out of the folder that it was meant for."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.kube import cluster
from reconciler.kube.api_server import RESOURCES, ApiRequest, BadPath, below, checked, folder
from reconciler.kube.apply.verbs import folder_of, kind_of, path_of
from reconciler.kube.client import Client
from reconciler.kube.leader import Candidacy
from reconciler.kube.memory_store import ConfigMapMemory
from reconciler.model.plan.decision import Ref

HOSTILE = (
    "../../../../../apis/rbac.authorization.k8s.io/v1/clusterrolebindings/x",
    "..", ".", "", "/", "a/b", "a//b", "a%2fb", "%2e%2e", "a?b", "a#b", "a;b", "a\\b", "a b", "a\n", "a\x00", "é",
    "\N{FULLWIDTH FULL STOP}\N{FULLWIDTH FULL STOP}", "a" * 254, "-a", "a-", ".a", "a..b", "A",
)  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_or_namespace_becomes_no_path(name: str) -> None:
    for attempt in (
        lambda: path_of(Ref("NodePool", "", name)),
        lambda: path_of(Ref("Pod", "team-a", name), "eviction"),
        lambda: path_of(Ref("Pod", name, "train")),
        lambda: folder_of(kind_of(Ref("Lease", "", "x")), name),
        lambda: cluster.places_of("node", name),
        lambda: cluster.places_of("all", name),
        lambda: Candidacy("me", name).path,
        lambda: ConfigMapMemory(None, name)._path("x"),  # type: ignore[arg-type]  # noqa: SLF001
    ):
        with pytest.raises(BadPath):
            attempt()


@pytest.mark.parametrize(
    ("group", "plural"),
    [
        ("rbac.authorization.k8s.io", "clusterrolebindings"),
        ("", "serviceaccounts"),
        ("", "pods/../secrets"),
        ("apps", ""),
    ],
)
def test_resources_are_of_a_closed_set(group: str, plural: str) -> None:
    assert (group, plural) not in RESOURCES
    with pytest.raises(BadPath):
        folder(group, plural)


def test_subresources_are_of_a_closed_set() -> None:
    assert below(folder("", "pods", "team-a"), "train", "eviction") == "/api/v1/namespaces/team-a/pods/train/eviction"
    for subresource in ("exec", "token", "../x"):
        with pytest.raises(BadPath):
            below(folder("", "pods", "team-a"), "train", subresource)


@given(st.text(string.ascii_letters + string.digits + "-./%?#:_ \n\\é", max_size=20))
def test_whatever_the_name_is_a_path_has_it_as_its_last_part_or_there_is_none(name: str) -> None:
    try:
        path = path_of(Ref("Node", "", name))
    except BadPath:
        return
    assert path.split("/") == ["", "api", "v1", "nodes", name]
    assert checked(path) == path


@pytest.mark.parametrize("path", ["/api/v1/nodes/../secrets", "/api//v1", "/api/v1/nodes/a?x=1", "api", "/", "/a/%2e"])
def test_the_client_asks_for_no_other_path(path: str) -> None:
    client = Client.__new__(Client)
    client._timeouts = type("Never", (), {"answer_seconds": 1.0})()  # noqa: SLF001
    with pytest.raises(BadPath):
        client.get(path)
    with pytest.raises(BadPath):
        client.send(ApiRequest("PATCH", path, b"{}"))


def test_what_is_written_in_a_namespace_names_one() -> None:
    with pytest.raises(BadPath):
        path_of(Ref("Pod", "", "train"))
