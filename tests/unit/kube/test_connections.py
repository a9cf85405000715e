"""Connections read any response of HTTP/1.1, keep a connection only if it is safe, and refuse what is no response."""

import contextlib
import http.client
import itertools
import socket
import threading
import time
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from urllib3 import PoolManager, ProxyManager
from urllib3.exceptions import HTTPError, ReadTimeoutError

from reconciler.kube.connections import Connections, HttpRequest, HttpResponse, Timeouts

LOOK = HttpRequest("GET", "/x?y=1", {"Accept": "a/b"})
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
BOTH = Timeouts(connect_seconds=5, answer_seconds=5)


class Server:
    """Answers each request with the next bytes, in the given parts; then it closes the connection."""

    def __init__(self, answers: Sequence[Sequence[bytes]], pause_seconds: float = 0.0) -> None:
        self.heads: list[bytes] = []
        self.accepted = 0
        self._answers, self._pause = list(answers), pause_seconds
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> "Server":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        self._thread.join(5)

    def _serve(self) -> None:
        while self._answers:
            try:
                accepted, _ = self._listener.accept()
            except OSError:
                return
            self.accepted += 1
            with accepted, contextlib.suppress(OSError):
                self._talk(accepted)

    def _talk(self, accepted: socket.socket) -> None:
        while self._answers:
            received = b""
            while b"\r\n\r\n" not in received:
                part = accepted.recv(65_536)
                if not part:
                    return
                received += part
            self.heads.append(received)
            for part in self._answers.pop(0):
                time.sleep(self._pause)
                accepted.sendall(part)
            if not part:  # an empty part ends the connection
                return


def exchange(*answers: Sequence[bytes]) -> tuple[list[HttpResponse], Server]:
    with Server(answers) as server, PoolManager() as manager:
        connections = Connections(manager, server.url)
        return [connections.exchange(LOOK, BOTH) for _ in answers], server


CASES: dict[str, tuple[bytes, int, bytes]] = {
    "a length": (OK, 200, b"hi"),
    "no body": (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
    "chunks": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;a=b\r\nh\r\n1\r\ni\r\n0\r\nT: x\r\n\r\n",
        200,
        b"hi",
    ),
    "an interim response": (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK, 200, b"hi"),
    "names in other cases": (b"HTTP/1.1 409 Conflict\r\ncontent-LENGTH:2\r\n\r\nno", 409, b"no"),
    "no reason": (b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", 200, b""),
}


@pytest.mark.parametrize(("answer", "status", "body"), CASES.values(), ids=CASES)
def test_each_response_is_read_to_its_end_and_the_connection_is_kept(answer: bytes, status: int, body: bytes) -> None:
    responses, server = exchange([answer], [OK])
    assert [(each.status, each.body) for each in responses] == [(status, body), (200, b"hi")]
    assert server.accepted == 1
    assert server.heads[0].startswith(b"GET /x?y=1 HTTP/1.1\r\nHost: 127.0.0.1:")
    assert b"\r\nAccept: a/b\r\n" in server.heads[0]


ENDED: dict[str, bytes] = {
    "which says so": b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi",
    "of an older version": b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi",
    "without a length": b"HTTP/1.1 200 OK\r\n\r\nhi",
    "with bytes after it": OK + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfake",
}


@pytest.mark.parametrize("answer", ENDED.values(), ids=ENDED)
def test_after_such_a_response_a_new_connection_is_made(answer: bytes) -> None:
    responses, server = exchange([answer, b""], [OK])
    assert [(each.status, each.body) for each in responses] == [(200, b"hi"), (200, b"hi")]
    assert server.accepted == 2


def test_a_kept_connection_that_the_server_closed_is_made_again() -> None:
    with Server([[OK, b""], [OK]]) as server, PoolManager() as manager:
        connections = Connections(manager, server.url)
        assert connections.exchange(LOOK, BOTH).body == b"hi"
        time.sleep(0.1)
        assert connections.exchange(LOOK, BOTH).body == b"hi"
        assert server.accepted == 2


BAD: dict[str, bytes] = {
    "nothing": b"",
    "half a head": b"HTTP/1.1 200 OK\r\nContent-",
    "half a body": b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi",
    "half a chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhi",
    "no number": b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
    "a negative number": b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    "a negative chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
    "another protocol": b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
    "a digit of another script": "HTTP/1.1 20² OK\r\n\r\n".encode("latin-1"),
    "a head without end": b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 20_000,
}


@pytest.mark.parametrize("answer", BAD.values(), ids=BAD)
def test_what_is_no_response_is_an_error(answer: bytes) -> None:
    with pytest.raises((HTTPError, OSError, http.client.HTTPException)):
        exchange([answer, b""])


def test_a_server_that_is_silent_is_given_up() -> None:
    with Server([[OK]], pause_seconds=1.0) as server, PoolManager() as manager, pytest.raises(ReadTimeoutError):
        Connections(manager, server.url).exchange(LOOK, Timeouts(answer_seconds=0.1))


def test_an_abort_ends_what_waits_and_refuses_what_comes_later() -> None:
    with Server([[OK]], pause_seconds=2.0) as server, PoolManager() as manager:
        connections = Connections(manager, server.url)
        threading.Timer(0.2, connections.abort).start()
        began = time.monotonic()
        with pytest.raises((HTTPError, OSError, http.client.HTTPException)):
            connections.exchange(LOOK, BOTH)
        assert time.monotonic() - began < 1.5
        with pytest.raises(HTTPError):
            connections.exchange(LOOK, BOTH)


def test_requests_are_below_the_path_of_the_server() -> None:
    with Server([[OK]]) as server, PoolManager() as manager:
        Connections(manager, f"{server.url}/k8s/clusters/c-1/").exchange(LOOK, BOTH)
    assert server.heads[0].startswith(b"GET /k8s/clusters/c-1/x?y=1 HTTP/1.1\r\n")


def test_a_proxy_is_asked_for_the_whole_address() -> None:
    with Server([[OK]]) as proxy, ProxyManager(proxy.url) as manager:
        connections = Connections(manager, "http://api.example:8080")
        assert connections.exchange(LOOK, BOTH) == HttpResponse(200, {"content-length": "2"}, b"hi")
    assert proxy.heads[0].startswith(b"GET http://api.example:8080/x?y=1 HTTP/1.1\r\n")
    assert b"\r\nAccept: a/b\r\n" in proxy.heads[0]


@pytest.mark.parametrize("value", ["a\r\nX: y", "a\nb"])
def test_no_value_begins_another_header(value: str) -> None:
    with Server([[OK]]) as server, PoolManager() as manager, pytest.raises(ValueError, match="line break"):
        Connections(manager, server.url).exchange(HttpRequest("GET", "/", {"Accept": value}), BOTH)


def cut(data: bytes, places: Sequence[int]) -> Iterator[bytes]:
    bounds = [0, *sorted({place % (len(data) + 1) for place in places}), len(data)]
    return (part for begin, end in itertools.pairwise(bounds) if (part := data[begin:end]))


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=5), st.lists(st.integers(0, 999), max_size=6))
def test_it_does_not_matter_how_the_bytes_arrive(chunks: list[bytes], places: list[int]) -> None:
    body = b"".join(b"%x\r\n%s\r\n" % (len(each), each) for each in chunks) + b"0\r\n\r\n"
    answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body
    (response,), _ = exchange(list(cut(answer, places)))
    assert response.body == b"".join(chunks)
