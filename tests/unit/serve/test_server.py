"""The HTTP server cuts off who holds connections, and answers everybody else; on loopback."""

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from reconciler.serve.server import (
    Answers,
    BoundedProtocol,
    ConnectionLimits,
    ListenAddress,
    Server,
    application,
    probes,
)

LIMITS = ConnectionLimits(connections=40, of_one_client=20, exchange_seconds=1.0, idle_seconds=1)
ANSWERS = Answers(str, str, lambda: b"x" * 20_000_000)
OTHER = "127.0.0.2"  # a client of its own


@contextlib.contextmanager
def serving(
    limits: ConnectionLimits = LIMITS, build: Callable[[Answers], object] = application
) -> Iterator[ListenAddress]:
    server = Server(ListenAddress("127.0.0.1", 0), build(ANSWERS), limits)  # type: ignore[arg-type]
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_until_complete, args=(server.serve(),))
    thread.start()
    try:
        yield server.address
    finally:
        loop.call_soon_threadsafe(server.stop)
        thread.join()
        loop.close()


def opened(address: ListenAddress, said: bytes, client: str = "127.0.0.1") -> socket.socket:
    connection = socket.create_connection((address.host, address.port), timeout=10, source_address=(client, 0))
    with contextlib.suppress(OSError):
        connection.sendall(said)
    return connection


def status(address: ListenAddress, path: str = "/healthz", client: str = "127.0.0.1") -> int:
    """0 where the connection was closed without an answer."""
    asked = f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
    with opened(address, asked, client) as connection, contextlib.suppress(OSError):
        line = connection.recv(64)
        return int(line.split()[1]) if line else 0
    return 0


def test_answers_are_sent_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nagle's algorithm would hold the body back until the client acknowledges the headers, which takes 40 ms."""
    delays: list[int] = []
    made = BoundedProtocol.connection_made

    def noting(self: BoundedProtocol, transport: asyncio.Transport) -> None:
        accepted = transport.get_extra_info("socket")
        delays.append(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        made(self, transport)

    monkeypatch.setattr(BoundedProtocol, "connection_made", noting)
    with serving() as address:
        assert status(address) == 200
    assert delays == [1]


def is_closed(connection: socket.socket, within: float) -> bool:
    connection.settimeout(within)
    try:
        return not connection.recv(1)
    except TimeoutError:
        return False
    except OSError:
        return True


def test_half_open_connections_of_one_client_leave_others_their_place() -> None:
    with serving() as address:
        held = [opened(address, b"GET /healthz HTTP/1.1\r\nX-Slow: ") for _ in range(140)]
        assert status(address, client=OTHER) == 200
        for each in held:
            each.close()


def test_half_open_connections_of_many_clients_are_cut_off() -> None:
    with serving() as address:
        held = [opened(address, b"GET /he", f"127.0.1.{number}") for number in range(1, 60)]
        time.sleep(1.5 * LIMITS.exchange_seconds)
        assert status(address, client=OTHER) == 200
        assert all(is_closed(each, 1) for each in held)
        for each in held:
            each.close()


@pytest.mark.parametrize("pause", [0.2, 0.9])
def test_who_sends_byte_by_byte_has_no_more_time(pause: float) -> None:
    with serving() as address, opened(address, b"GET ") as connection:
        began = time.monotonic()
        with contextlib.suppress(OSError):
            while time.monotonic() - began < 4 * LIMITS.exchange_seconds:
                connection.sendall(b"/")
                time.sleep(pause)
        assert time.monotonic() - began < 3 * LIMITS.exchange_seconds


def test_who_does_not_read_the_answer_is_cut_off() -> None:
    with serving() as address:
        held = [opened(address, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n") for _ in range(LIMITS.of_one_client)]
        assert status(address) == 0
        time.sleep(3 * LIMITS.exchange_seconds)
        assert status(address) == 200
        for each in held:
            each.close()


def test_an_idle_connection_is_closed_and_one_in_use_answers_again() -> None:
    with serving() as address, opened(address, b"") as connection:
        for _ in range(3):
            connection.sendall(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
            told = b""
            while not told.endswith(b"ok"):
                told += connection.recv(4096)
            assert told.startswith(b"HTTP/1.1 200")
        assert is_closed(connection, 3 * LIMITS.idle_seconds)


def test_answers_do_not_wait_for_acknowledgements() -> None:
    """Heads and bodies are sent one by one: with Nagle's algorithm each answer on a kept connection takes 40 ms."""
    server = Server(ListenAddress("127.0.0.1", 0), probes(ANSWERS))
    listening = server._socket  # noqa: SLF001 - the address has no other owner
    with listening, socket.create_connection(listening.getsockname()), listening.accept()[0] as accepted:
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_header_without_end_is_refused() -> None:
    header = b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 50_000
    with serving() as address, opened(address, header) as connection, contextlib.suppress(OSError):
        assert connection.recv(64).startswith(b"HTTP/1.1 400")


def test_probes_answer_on_a_port_of_their_own() -> None:
    with serving(build=probes) as address, serving() as other:
        held = [opened(other, b"GET /healthz", f"127.0.1.{number}") for number in range(1, 60)]
        assert (status(address), status(address, "/readyz"), status(address, "/metrics")) == (200, 200, 404)
        for each in held:
            each.close()
