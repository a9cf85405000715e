"""The client says in a sentence why there is no cluster to ask, and never what is secret."""

import contextlib
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.kube.api_server import Unreachable
from reconciler.kube.client import Client, connect
from tests.unit.lab.proxy_stage import Papers, Upstream, write_papers

SECRET = "sesame-open-up"


@pytest.fixture(autouse=True)
def no_kubeconfig(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever the person who runs the tests has at home stays out of them."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Papers:
    return write_papers(tmp_path_factory.mktemp("papers"))


@pytest.fixture
def upstream(papers: Papers) -> Iterator[Upstream]:
    with Upstream(papers.server_tls).serving() as upstream:
        yield upstream


def url_of(upstream: Upstream) -> str:
    return f"https://127.0.0.1:{upstream.server_port}"


def kubeconfig(folder: Path, user: dict[str, Any], **cluster: Any) -> Path:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1", **cluster}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "first", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "first",
    }
    path = folder / "config"
    path.write_text(yaml.safe_dump(content))
    return path


def refusal(context: str | None = None) -> str:
    with pytest.raises(Unreachable) as refused:
        connect(context).get("/api")
    assert SECRET not in str(refused.value)
    assert refused.value.remedy
    return str(refused.value)


def test_without_a_kubeconfig_it_says_what_to_name() -> None:
    assert refusal() == (
        "there is no kubeconfig at ~/.kube/config, and this process does not run in a pod: "
        "set KUBECONFIG, or read a cluster file with --cluster"
    )


def test_a_kubeconfig_that_is_named_and_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "gone"))
    assert f"there is no kubeconfig at {tmp_path}/gone" in refusal()


def test_a_pod_without_its_account_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert "the service account of this pod cannot be used" in refusal()


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "a: [",
        "a\n",
        f"{{users: [{{name: u, user: {{token: {SECRET}}}}}]}}",
        f"{{contexts: [{{name: x, context: {{user: {SECRET}}}}}], current-context: x, users: [{{name: {SECRET}}}]}}",
        f"{{contexts: 3, clusters: {SECRET}, users: []}}",
    ],
)
def test_a_kubeconfig_that_is_none_is_refused_in_a_sentence(
    content: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "config"
    path.write_text(content)
    monkeypatch.setenv("KUBECONFIG", str(path))
    assert refusal().startswith(f"the kubeconfig {path} cannot be used: ")


def test_a_context_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path, {"token": SECRET})))
    told = refusal("second")
    assert "second" in told
    assert told.endswith("kubectl config get-contexts lists the contexts")


def test_an_api_server_that_is_not_there_is_told_with_its_address(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path, {"token": SECRET})))
    assert refusal() == (
        "the API server at https://127.0.0.1:1 cannot be reached (Connection refused): "
        "check that the API server runs and is reachable"
    )


def test_a_certificate_of_somebody_else_is_not_trusted(upstream: Upstream, tmp_path: Path) -> None:
    stranger = write_papers(tmp_path).authority
    with pytest.raises(Unreachable, match="has an untrusted certificate"):
        Client.at(url_of(upstream), stranger, SECRET).get("/api")


def test_a_plugin_of_the_kubeconfig_gives_the_token(
    upstream: Upstream, papers: Papers, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plugin = tmp_path / "plugin"
    version = "client.authentication.k8s.io/v1"
    credential = f'{{"apiVersion": "{version}", "kind": "ExecCredential", "status": {{"token": "{SECRET}"}}}}'
    plugin.write_text(f"#!/bin/sh\ncat <<'END'\n{credential}\nEND\n")
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)
    user = {"exec": {"apiVersion": version, "command": str(plugin), "interactiveMode": "Never"}}
    path = kubeconfig(tmp_path, user, server=url_of(upstream), **{"certificate-authority": str(papers.authority)})
    monkeypatch.setenv("KUBECONFIG", str(path))
    assert connect().get("/api").status == 200
    assert upstream.seen[-1].headers["Authorization"] == f"Bearer {SECRET}"
    assert upstream.seen[-1].headers["User-Agent"].startswith("reconciler/")


def test_a_silent_watch_is_given_up(upstream: Upstream, papers: Papers) -> None:
    client = Client.at(url_of(upstream), papers.authority, SECRET)
    with client.stream("/x", {"watch": "true"}, 0.2) as stream:
        upstream.watches.get(timeout=20).say(b"one\ntwo\nthr")
        assert [next(stream.lines), next(stream.lines)] == [b"one", b"two"]
        with pytest.raises(Unreachable, match="stopped responding"):
            next(stream.lines)


def test_lines_are_whole_however_they_come(upstream: Upstream, papers: Papers) -> None:
    client = Client.at(url_of(upstream), papers.authority, SECRET)
    with client.stream("/x", {"watch": "true"}, 5) as stream:
        watch = upstream.watches.get(timeout=20)
        watch.say(b"on")
        watch.say(b"e\ntw")
        watch.say(b"o\n\nrest")
        watch.finish()
        assert list(stream.lines) == [b"one", b"two", b"", b"rest"]


def accept_and_close(listener: socket.socket) -> None:
    listener.accept()[0].close()


def test_a_connection_that_breaks_off_is_told(papers: Papers) -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
        hang_up = threading.Thread(target=accept_and_close, args=[listener])
        hang_up.start()
        with pytest.raises(Unreachable):
            Client.at(f"https://127.0.0.1:{port}", papers.authority, SECRET).get("/api")
        hang_up.join(20)


def test_closing_ends_a_watch_on_another_thread_and_refuses_what_comes_later(
    upstream: Upstream, papers: Papers
) -> None:
    client = Client.at(url_of(upstream), papers.authority, SECRET)
    ended = threading.Event()

    def watch() -> None:
        with contextlib.suppress(Unreachable), client.stream("/x", {"watch": "true"}, 60) as stream:
            list(stream.lines)
        ended.set()

    thread = threading.Thread(target=watch)
    thread.start()
    upstream.watches.get(timeout=20).say(b"one\n")
    client.close()
    assert ended.wait(20)
    thread.join(20)
    with pytest.raises(Unreachable, match="was closed"):
        client.get("/api")


def test_apart_is_the_same_identity_that_outlives_the_other(upstream: Upstream, papers: Papers) -> None:
    client = Client.at(url_of(upstream), papers.authority, SECRET)
    other = client.apart()
    client.close()
    assert other.get("/api").status == 200
    assert upstream.seen[-1].headers["Authorization"] == f"Bearer {SECRET}"
