"""The scheduler extender answers over TLS to the scheduler and to nobody else, and within bounds; on loopback."""

import asyncio
import contextlib
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.model import names
from reconciler.model.instant import Instant
from reconciler.protocol.certificates import CertificateSteps, service_names
from reconciler.protocol.extender import (
    BindAnswer,
    BindRequest,
    FilterAnswer,
    FilterRequest,
    NodeScore,
    PreemptAnswer,
    PreemptRequest,
)
from reconciler.serve import extender
from reconciler.serve.certificates import CHAIN, KEY, Certificates, apply_steps, written_scheduler_secret
from reconciler.serve.server import ConnectionLimits, ListenAddress, Server
from reconciler.serve.tls import CertificatePair, TlsContext

NAMES = service_names(names.EXTENDER_SERVICE, names.OWN_NAMESPACE)
LIMITS = ConnectionLimits(connections=40, of_one_client=40, exchange_seconds=5.0, idle_seconds=1)
POD = {"metadata": {"name": "train-0", "namespace": "team-a", "uid": "u-1", "annotations": {names.CLAIM: "train"}}}


def certificates() -> Certificates:
    now = Instant(time.time_ns() // 1_000_000)
    return apply_steps(Certificates(), CertificateSteps(makes_authority=True, signs=True), NAMES, now)


def client_pair(issuer: Certificates, name: str = names.GPU_SCHEDULER) -> CertificatePair:
    now = Instant(time.time_ns() // 1_000_000)
    content = written_scheduler_secret({}, issuer, issuer.facts.authorities[-1].fingerprint, name, now)
    return CertificatePair(content[CHAIN], content[KEY])


OURS, STRANGERS = certificates(), certificates()
SCHEDULER = client_pair(OURS)


class Answers:
    """An Extender that answers by what it is asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.why_unready = ""

    def filter(self, request: FilterRequest) -> FilterAnswer:
        self.asked.append(request)
        return FilterAnswer(["node-a"], {"node-b": "no free GPUs"})

    def prioritize(self, request: FilterRequest) -> list[NodeScore]:
        self.asked.append(request)
        return [NodeScore("node-a", 10)]

    def preempt(self, request: PreemptRequest) -> PreemptAnswer:
        if self.why_unready:
            raise extender.NotReady(self.why_unready)
        self.asked.append(request)
        return PreemptAnswer(request.node_name_to_meta_victims)

    async def bind(self, request: BindRequest) -> BindAnswer:
        self.asked.append(request)
        await asyncio.sleep(0)
        return BindAnswer("the pod no longer exists")


class Serving:
    def __init__(self, address: ListenAddress, answers: Answers, tls: TlsContext, loop: Any) -> None:
        self.address, self.answers, self._tls, self._loop = address, answers, tls, loop

    def load(self, found: Certificates) -> None:
        done = threading.Event()

        def load() -> None:
            assert found.serving is not None
            self._tls.load(found.serving, found.bundle)
            done.set()

        self._loop.call_soon_threadsafe(load)
        assert done.wait(10)


@contextlib.contextmanager
def serving(found: Certificates | None = OURS) -> Iterator[Serving]:
    tls, answers = TlsContext(client_name=names.GPU_SCHEDULER), Answers()
    server = Server(ListenAddress("127.0.0.1", 0), extender.extender_routes(answers, answers.bind), LIMITS, tls)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_until_complete, args=(server.serve(),))
    thread.start()
    try:
        served = Serving(server.address, answers, tls, loop)
        if found is not None:
            served.load(found)
        yield served
    finally:
        loop.call_soon_threadsafe(server.stop)
        thread.join()
        loop.close()


@contextlib.contextmanager
def connected(
    served: Serving, folder: Path, client: CertificatePair | None = SCHEDULER, known: Certificates = OURS
) -> Iterator[ssl.SSLSocket]:
    context = ssl.create_default_context(cadata=known.bundle.decode())
    if client is not None:
        (folder / "tls.crt").write_bytes(client.chain)
        (folder / "tls.key").write_bytes(client.key)
        context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    plain = socket.create_connection((served.address.host, served.address.port), timeout=10)
    with plain, context.wrap_socket(plain, server_hostname=NAMES[0]) as connection:
        yield connection


def asked(served: Serving, folder: Path, path: str, body: bytes, **how: Any) -> tuple[int, bytes]:
    """The status and body of an answer; 0 if the server closes the connection without an answer."""
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    told = b""
    with contextlib.suppress(OSError), connected(served, folder, **how) as connection:
        with contextlib.suppress(OSError):  # the server may answer before it has read everything
            connection.sendall(head.encode() + body)
        while piece := connection.recv(65_536):
            told += piece
    headers, _, content = told.partition(b"\r\n\r\n")
    return (int(headers.split()[1]), content) if told else (0, b"")


BODIES: dict[str, Any] = {
    "/filter": {"Pod": POD, "Nodes": None, "NodeNames": ["node-a", "node-b"]},
    "/prioritize": {"Pod": POD, "Nodes": None, "NodeNames": ["node-a"]},
    "/preempt": {
        "Pod": {**POD, "status": {"phase": "Pending", "nominatedNodeName": "node-b"}},
        "NodeNameToVictims": None,
        "NodeNameToMetaVictims": {"node-a": {"Pods": [{"UID": "u-9"}], "NumPDBViolations": 1}},
    },
    "/bind": {"PodName": "train-0", "PodNamespace": "team-a", "PodUID": "u-1", "Node": "node-a"},
}
ANSWERS: dict[str, Any] = {
    "/filter": {
        "NodeNames": ["node-a"],
        "FailedNodes": {"node-b": "no free GPUs"},
        "FailedAndUnresolvableNodes": {},
        "Error": "",
    },
    "/prioritize": [{"Host": "node-a", "Score": 10}],
    "/preempt": {"NodeNameToMetaVictims": {"node-a": {"Pods": [{"UID": "u-9"}], "NumPDBViolations": 1}}},
    "/bind": {"Error": "the pod no longer exists"},
}


@pytest.mark.parametrize("path", BODIES)
def test_each_verb_is_answered_in_the_words_of_kube_scheduler(path: str, tmp_path: Path) -> None:
    with serving() as served:
        code, body = asked(served, tmp_path, path, json.dumps(BODIES[path]).encode())
        assert (code, json.loads(body)) == (200, ANSWERS[path])
        (request,) = served.answers.asked
    if path == "/bind":
        assert request == BindRequest("train-0", "team-a", "u-1", "node-a")
    else:
        assert (request.pod.metadata.uid, request.pod.metadata.annotations.claim) == ("u-1", "train")
        assert request.pod.status.nominated_node_name == ("node-b" if path == "/preempt" else "")


def test_a_preemption_that_cannot_be_judged_yet_is_an_error_and_no_refusal(tmp_path: Path) -> None:
    with serving() as served:
        served.answers.why_unready = "the cluster has not been read yet"
        code, body = asked(served, tmp_path, "/preempt", json.dumps(BODIES["/preempt"]).encode())
    assert (code, body) == (503, b"reconciler can't answer: the cluster has not been read yet")


CLIENTS: dict[str, CertificatePair | None] = {
    "no certificate": None,
    "another authority": client_pair(STRANGERS),
    "another name": client_pair(OURS, "kube-scheduler"),
    "a longer name": client_pair(OURS, "gpu-scheduler-2"),
    "the serving certificate": OURS.serving,
}


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("client", CLIENTS)
def test_no_other_client_is_answered(path: str, client: str, tmp_path: Path) -> None:
    with serving() as served:
        code, _ = asked(served, tmp_path, path, json.dumps(BODIES[path]).encode(), client=CLIENTS[client])
        assert code == 0
        assert served.answers.asked == []


def test_before_the_first_certificate_nobody_is_answered(tmp_path: Path) -> None:
    with serving(None) as served:
        assert asked(served, tmp_path, "/filter", b"{}") == (0, b"")


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize(
    "body", [b"", b"\xff", b"null", b"[]", b"{}", b"[" * 60_000, b'{"Pod": 1}', b'{"PodName": [], "Node": {}}']
)
def test_other_bodies_are_refused_with_a_sentence(path: str, body: bytes, tmp_path: Path) -> None:
    with serving() as served:
        code, sentence = asked(served, tmp_path, path, body)
        assert code == 400
        assert 10 < len(sentence) < 400
        assert b"Traceback" not in sentence
        assert served.answers.asked == []


@pytest.mark.parametrize("path", BODIES)
def test_a_body_that_is_too_large_is_refused(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extender, "LARGEST_BODY", 100_000)
    body = json.dumps(BODIES[path]).encode()
    with serving() as served:
        assert asked(served, tmp_path, path, body + b" " * (100_000 - len(body)))[0] == 200
        code, sentence = asked(served, tmp_path, path, body + b" " * (100_001 - len(body)))
        assert (code, b"100000 bytes" in sentence) == (400, True)
        assert len(served.answers.asked) == 1


def test_other_paths_and_methods_are_refused(tmp_path: Path) -> None:
    with serving() as served:
        for line, code in (("GET /filter", 405), ("POST /", 404), ("GET /metrics", 404), ("POST /pods", 404)):
            with connected(served, tmp_path) as connection:
                connection.sendall(f"{line} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n".encode())
                assert int(connection.recv(64).split()[1]) == code


def test_after_a_new_authority_clients_of_the_old_one_are_not_answered(tmp_path: Path) -> None:
    body = json.dumps(BODIES["/filter"]).encode()
    with serving() as served:
        assert asked(served, tmp_path, "/filter", body)[0] == 200
        both = Certificates((*OURS.authorities, *STRANGERS.authorities), OURS.serving)
        served.load(both)
        assert asked(served, tmp_path, "/filter", body)[0] == 200
        assert asked(served, tmp_path, "/filter", body, client=CLIENTS["another authority"])[0] == 200
        served.load(STRANGERS)
        assert asked(served, tmp_path, "/filter", body, known=STRANGERS) == (0, b"")
        assert asked(served, tmp_path, "/filter", body, known=STRANGERS, client=CLIENTS["another authority"])[0] == 200
