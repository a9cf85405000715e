"""The webhook answers over TLS, within bounds, and with a certificate that can be replaced; on loopback."""

import asyncio
import contextlib
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.model.instant import Instant
from reconciler.protocol.admission.decision import Grounds
from reconciler.protocol.admission.review import MOST_BYTES
from reconciler.protocol.certificates import CertificateSteps, service_names
from reconciler.serve import webhook
from reconciler.serve.certificates import Certificates, apply_steps
from reconciler.serve.server import ConnectionLimits, ListenAddress, Server
from reconciler.serve.tls import BadCertificate, CertificatePair, TlsContext
from tests.lab.certificates import Authority
from tests.unit.protocol.admission.stage import grounds, new_pod, response_in, review_of

NAMES = service_names("hook", "gpu-system")
LIMITS = ConnectionLimits(connections=40, of_one_client=20, exchange_seconds=1.0, idle_seconds=1)
Answer = tuple[int, bytes]


def certificates() -> Certificates:
    now = Instant(time.time_ns() // 1_000_000)
    return apply_steps(Certificates(), CertificateSteps(makes_authority=True, signs=True), NAMES, now)


FIRST, SECOND = certificates(), certificates()


def loaded(found: Certificates = FIRST) -> CertificatePair:
    assert found.serving is not None
    return found.serving


class Claims:
    """A Lookup with what a test says."""

    def __init__(self, found: Callable[[], Grounds | str] = lambda: grounds({})) -> None:
        self.found = found

    def grounds(self, namespace: str, claim: str) -> Grounds | str:
        assert (namespace, claim) == ("team-a", "train")
        return self.found()


@contextlib.contextmanager
def serving(
    claims: Claims | None = None,
    count: Callable[[str], None] = lambda _: None,
    tls: TlsContext | None = None,
    limits: ConnectionLimits = LIMITS,
) -> Iterator[tuple[ListenAddress, Callable[[CertificatePair], object]]]:
    """The address, and a function that replaces the certificate."""
    if tls is None:
        tls = TlsContext()
        tls.load(loaded())
    hook = webhook.Webhook(claims or Claims(), count)
    server = Server(ListenAddress("127.0.0.1", 0), hook.application(), limits, tls)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_until_complete, args=(server.serve(),))
    thread.start()
    try:
        yield server.address, lambda certificate: loop.call_soon_threadsafe(tls.load, certificate)
    finally:
        loop.call_soon_threadsafe(server.stop)
        thread.join()
        loop.close()
        hook.stop()


@contextlib.contextmanager
def connected(
    address: ListenAddress, known: Certificates = FIRST, client: str = "127.0.0.1"
) -> Iterator[ssl.SSLSocket]:
    context = ssl.create_default_context(cadata=known.bundle.decode())
    plain = socket.create_connection((address.host, address.port), timeout=10, source_address=(client, 0))
    with plain, context.wrap_socket(plain, server_hostname=NAMES[0]) as connection:
        yield connection


def asked(
    address: ListenAddress, body: bytes, known: Certificates = FIRST, head: str = "Content-Type: application/json"
) -> Answer:
    request = f"POST /pods HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n{head}\r\n\r\n"
    with connected(address, known) as connection:
        with contextlib.suppress(OSError):  # the server may answer before it has read everything
            connection.sendall(request.encode() + body)
        told = b""
        with contextlib.suppress(OSError):
            while piece := connection.recv(65_536):
                told += piece
    headers, _, content = told.partition(b"\r\n\r\n")
    return int(headers.split()[1]), content


def reviewed(address: ListenAddress, pod: dict[str, Any], known: Certificates = FIRST) -> dict[str, Any]:
    code, body = asked(address, review_of(pod), known)
    assert code == 200
    return response_in(body)


def test_pods_are_admitted_and_refused() -> None:
    counted: list[str] = []
    with serving(count=counted.append) as (address, _):
        admitted = reviewed(address, new_pod({}))
        assert {each["path"] for each in admitted["patch"]} >= {"/spec/schedulerName", "/spec/affinity"}
        assert reviewed(address, {"metadata": {}, "spec": {}}) == {"uid": "1-2-3", "allowed": True}
        refused = reviewed(address, new_pod({"spec": {"nodeName": "node-1"}}))
        assert (refused["allowed"], refused["status"]["code"]) == (False, 403)
        bad_name = reviewed(address, new_pod({"annotations": {"gpu.scheduling/claim": "../.."}}))
        assert not bad_name["allowed"]
    assert counted == ["admitted", "admitted", "NodeNamed", "BadClaimName"]


@pytest.mark.parametrize("why", ["the policies have not been read yet", "slow", "broken"])
def test_what_is_not_known_yet_is_refused_with_the_reason(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "LOOKUP_SECONDS", 0.2)
    ended = threading.Event()

    def found() -> Grounds | str:
        if why == "broken":
            raise ZeroDivisionError("a secret")
        if why == "slow":
            ended.wait(5)
        return why

    with serving(Claims(found)) as (address, _):
        status = reviewed(address, new_pod({}))["status"]
        ended.set()
    assert status["code"] == 503
    sentence = {"slow": "did not send the claim in time", "broken": "a bug in reconciler: ZeroDivisionError"}
    assert sentence.get(why, why) in status["message"]
    assert "a secret" not in status["message"]


@pytest.mark.parametrize(
    ("body", "head", "code"),
    [
        (b"{}", "Content-Type: application/json", 400),
        (b"\xff", "Content-Type: application/json; charset=utf-8", 400),
        (b"[" * 60_000, "Content-Type: application/json", 400),
        (b"", "Content-Type: application/json", 400),
        (review_of(new_pod({})), "Content-Type: application/yaml", 400),
        (review_of(new_pod({})), "X: y", 400),
    ],
)
def test_other_bodies_are_refused_with_a_sentence(body: bytes, head: str, code: int) -> None:
    with serving() as (address, _):
        found, sentence = asked(address, body, head=head)
        assert found == code
        assert 10 < len(sentence) < 400
        assert b"Traceback" not in sentence
        assert b"File" not in sentence


@pytest.mark.parametrize("length", [str(MOST_BYTES + 1), "9" * 5_000, "-1", "x"])
def test_a_body_that_is_too_large_is_refused_before_it_is_sent(length: str) -> None:
    head = f"POST /pods HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    with serving() as (address, _), connected(address) as connection:
        connection.sendall(head.encode())
        assert connection.recv(64).split()[1] in {b"400", b"413"}


def test_a_body_of_unknown_length_is_bounded_too() -> None:
    chunk = b"10000\r\n" + b" " * 65_536 + b"\r\n"
    last = b"1\r\n \r\n"  # the server reads all that is sent, or its answer could be lost
    head = b"POST /pods HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    with serving() as (address, _), connected(address) as connection:
        with contextlib.suppress(OSError):
            connection.sendall(head + chunk * (MOST_BYTES // 65_536) + last)
        assert connection.recv(64).startswith(b"HTTP/1.1 413")


def test_a_large_pod_is_admitted() -> None:
    pod = new_pod({"annotations": {"note": "x" * 1_000_000}})
    with serving() as (address, _):
        assert reviewed(address, pod)["allowed"]


def test_a_request_that_comes_with_the_end_of_the_handshake_is_answered() -> None:
    context = ssl.create_default_context(cadata=FIRST.bundle.decode())
    received, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(received, sent, server_hostname=NAMES[0])
    with serving() as (address, _), socket.create_connection((address.host, address.port), timeout=10) as plain:
        while True:
            try:
                client.do_handshake()
                break
            except ssl.SSLWantReadError:
                plain.sendall(sent.read())
                received.write(plain.recv(65_536))
        client.write(b"GET /pods HTTP/1.1\r\nHost: x\r\n\r\n")
        plain.sendall(sent.read())  # the last message of the handshake, and the request
        told = b""
        while not told:
            piece = plain.recv(65_536)
            assert piece, "the connection was closed without an answer"
            received.write(piece)
            with contextlib.suppress(ssl.SSLWantReadError):
                told = client.read(64)
    assert told.startswith(b"HTTP/1.1 405")


def test_other_paths_and_methods_are_refused() -> None:
    with serving() as (address, _):
        for line, code in (("GET /pods", 405), ("POST /", 404), ("GET /metrics", 404)):
            with connected(address) as connection:
                connection.sendall(f"{line} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n".encode())
                assert int(connection.recv(64).split()[1]) == code


# --- Certificates.


def test_a_new_certificate_is_served_to_new_connections_and_old_ones_go_on() -> None:
    with serving() as (address, replace), connected(address) as connection:
        replace(loaded(SECOND))
        deadline = time.monotonic() + 10
        while True:
            with contextlib.suppress(ssl.SSLError):
                assert reviewed(address, new_pod({}), SECOND)["allowed"]
                break
            assert time.monotonic() < deadline
        with pytest.raises(ssl.SSLCertVerificationError):
            reviewed(address, new_pod({}), FIRST)
        body = review_of(new_pod({}))
        head = (
            f"POST /pods HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        connection.sendall(head.encode() + body)
        assert connection.recv(64).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "bad",
    [
        CertificatePair(b"", b""),
        CertificatePair(loaded(SECOND).chain, loaded().key),
        CertificatePair(b"-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n", loaded().key),
    ],
)
def test_a_certificate_that_cannot_be_used_leaves_the_previous_one(bad: CertificatePair) -> None:
    tls = TlsContext()
    tls.load(loaded())
    with pytest.raises(BadCertificate):
        tls.load(bad)
    with serving(tls=tls) as (address, _):
        assert reviewed(address, new_pod({}))["allowed"]


def test_without_a_certificate_no_handshake_succeeds() -> None:
    with serving(tls=TlsContext()) as (address, _), pytest.raises((ssl.SSLError, ConnectionError)), connected(address):
        pass


# --- Clients with a certificate.


def test_if_clients_need_a_certificate_only_those_of_the_authority_are_answered(tmp_path: Path) -> None:
    """The certificate of a webhook is for servers only, so the test makes its own for a client."""
    ours, strangers = Authority(tmp_path / "ours"), Authority(tmp_path / "strangers")
    tls = TlsContext(ours.certificate.read_bytes())
    tls.load(loaded())
    with serving(tls=tls) as (address, _):
        for client, is_answered in (
            (ours.client("api-server"), True),
            (strangers.client("api-server"), False),
            (None, False),
        ):
            context = ssl.create_default_context(cadata=FIRST.bundle.decode())
            if client is not None:
                context.load_cert_chain(client.certificate, client.key)
            told = b""
            with (
                contextlib.suppress(OSError),
                socket.create_connection((address.host, address.port), 10) as plain,
                context.wrap_socket(plain, server_hostname=NAMES[0]) as connection,
            ):
                connection.sendall(b"GET /pods HTTP/1.1\r\nHost: x\r\n\r\n")
                told = connection.recv(64)
            assert told.startswith(b"HTTP/1.1 405") == is_answered


@pytest.mark.parametrize("bad", [b"", b"x", b"\xff", b"-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"])
def test_authorities_of_clients_that_cannot_be_read_are_refused(bad: bytes) -> None:
    with pytest.raises(BadCertificate):
        TlsContext(bad)


# --- Connections without a handshake.


def test_clients_without_a_handshake_leave_others_their_place() -> None:
    with serving() as (address, _):
        held = [
            socket.create_connection((address.host, address.port), source_address=(f"127.0.1.{number}", 0))
            for number in range(1, 5)
            for _ in range(LIMITS.of_one_client + 5)
        ]
        time.sleep(1.5 * LIMITS.exchange_seconds)
        assert reviewed(address, new_pod({}))["allowed"]
        for each in held:
            each.settimeout(3)
            with contextlib.suppress(ConnectionError):
                assert each.recv(1) == b""
            each.close()


def test_connections_over_the_limit_are_closed_at_once() -> None:
    patient = ConnectionLimits(connections=40, of_one_client=20, exchange_seconds=60.0, idle_seconds=60)
    with serving(limits=patient) as (address, _):
        held = [
            socket.create_connection((address.host, address.port), timeout=20, source_address=("127.0.1.1", 0))
            for _ in range(patient.of_one_client + 1)
        ]
        with contextlib.suppress(ConnectionError):
            assert held[-1].recv(1) == b""
        assert reviewed(address, new_pod({}))["allowed"]
        for each in held:
            each.close()


def test_one_client_without_a_handshake_leaves_other_clients_their_place() -> None:
    with serving() as (address, _):
        held = [
            socket.create_connection((address.host, address.port), source_address=("127.0.1.1", 0)) for _ in range(140)
        ]
        assert reviewed(address, new_pod({}))["allowed"]
        for each in held:
            each.close()


def test_bytes_that_are_no_handshake_end_the_connection() -> None:
    with serving() as (address, _):
        with socket.create_connection((address.host, address.port), timeout=5) as plain:
            plain.sendall(b"GET /pods HTTP/1.1\r\n\r\n" + b"x" * 100_000)
            with contextlib.suppress(ConnectionError):
                while plain.recv(1024):
                    pass
        assert reviewed(address, new_pod({}))["allowed"]


def test_many_reviews_at_once_are_all_answered() -> None:
    codes: list[int] = []

    def ask() -> None:
        code, body = asked(address, json.dumps({"x": 1}).encode() if len(codes) % 2 else review_of(new_pod({})))
        codes.append(code if body else 0)

    with serving() as (address, _):
        threads = [threading.Thread(target=ask) for _ in range(LIMITS.of_one_client)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert len(codes) == LIMITS.of_one_client
    assert set(codes) <= {200, 400}
