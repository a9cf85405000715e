"""The HTTP servers of a running reconciler; owner of the socket that each listens on."""

import asyncio
import contextlib
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

# --- HTTP connections with limits: how many at once, how many a client, and how long each step may take.
#
# A connection over a limit is closed before anything is read. An exchange has one deadline, from its first byte, or the
# opening of the connection, until its answer has been sent: whoever sends a header byte by byte, or does not read the
# answer, is cut off. Between exchanges a connection stays open for a moment. So no client holds a place for long, and
# none holds them all.

LARGEST_HEADER = 16_384  # bytes


class ConnectionLimits(msgspec.Struct, frozen=True):
    """Of one server."""

    connections: int = 128
    of_one_client: int = 32
    exchange_seconds: float = 10.0
    idle_seconds: int = 5


LIMITS = ConnectionLimits()


class BoundedProtocol(H11Protocol):
    """One connection; owner of its deadline. `bounded` makes the class of a server, which counts its clients."""

    limits: ClassVar[ConnectionLimits] = LIMITS
    clients: ClassVar[Counter[str]] = Counter()

    _address = ""  # of the client, once it counts
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        address = self.client[0] if self.client else "unknown"
        limits, clients = self.limits, self.clients
        if clients.total() >= limits.connections or clients[address] >= limits.of_one_client:
            transport.abort()
            return
        self._address = address
        clients[address] += 1
        self._begin()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        if self._address:
            self.clients[self._address] -= 1
            if not self.clients[self._address]:
                del self.clients[self._address]
            self._address = ""
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._address:  # what was sent before it was refused
            return
        if self._deadline is None:
            self._begin()
        super().data_received(data)

    def on_response_complete(self) -> None:
        self._end()
        super().on_response_complete()

    def timeout_keep_alive_handler(self) -> None:
        """Also where the client does not read what was sent."""
        super().timeout_keep_alive_handler()
        self.loop.call_later(self.limits.exchange_seconds, self.transport.abort)

    def _begin(self) -> None:
        self._deadline = self.loop.call_later(self.limits.exchange_seconds, self.transport.abort)

    def _end(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def bounded(limits: ConnectionLimits) -> type[BoundedProtocol]:
    """The class of all connections of one server."""
    own: dict[str, Any] = {"limits": limits, "clients": Counter[str]()}
    return type("BoundedProtocolOfServer", (BoundedProtocol,), own)


_GRACE_SECONDS = 1  # for answers that are under way at the end


class ListenAddress(msgspec.Struct, frozen=True):
    """Where it listens; port 0 takes any that is free."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Server:
    """Listens from the start, so that an address in use is told at once. Raises OSError."""

    def __init__(self, address: ListenAddress, application: Starlette, limits: ConnectionLimits = LIMITS) -> None:
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        self._socket = socket.create_server((address.host, address.port), family=family, backlog=limits.connections)
        configuration = uvicorn.Config(
            application,
            log_config=None,
            access_log=False,
            lifespan="off",
            http=bounded(limits),
            ws="none",
            h11_max_incomplete_event_size=LARGEST_HEADER,
            timeout_keep_alive=limits.idle_seconds,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
        self._server = _Quiet(configuration)

    @property
    def address(self) -> ListenAddress:
        host, port = self._socket.getsockname()[:2]
        return ListenAddress(host, port)

    async def serve(self) -> None:
        """Until it is told to stop."""
        try:
            await self._server.serve([self._socket])
        finally:
            self._socket.close()

    def stop(self) -> None:
        """From the thread that serves."""
        self._server.should_exit = True


class _Quiet(uvicorn.Server):
    """Signals are for the whole process, not for its server."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


# --- What a running reconciler answers to those who run it: whether it lives, whether it is ready, and its metrics.
#
# Probes may have a server of their own, so that whoever holds the connections of the other one does not have the
# replica restarted.

METRICS_TYPE = "text/plain; version=1.0.0; charset=utf-8"

Why = Callable[[], str]


class Answers(msgspec.Struct, frozen=True):
    """Asked on the main thread: each only looks, and never waits."""

    why_unhealthy: Why  # nothing when it lives
    why_unready: Why  # nothing when it is ready
    metrics: Callable[[], bytes]
    notices: Callable[[], tuple[str, ...]] = tuple  # what is amiss though it is ready, a line each


def application(answers: Answers) -> Starlette:
    """All routes."""

    async def metrics(_: Request) -> Response:
        return Response(answers.metrics(), media_type=METRICS_TYPE)

    return Starlette(routes=[*_probes(answers), Route("/metrics", metrics)])


def probes(answers: Answers) -> Starlette:
    """Whether the replica lives, and whether it is ready."""
    return Starlette(routes=_probes(answers))


def _probes(answers: Answers) -> list[Route]:

    async def healthz(_: Request) -> Response:
        return _said(answers.why_unhealthy())

    async def readyz(_: Request) -> Response:
        return _said(answers.why_unready(), answers.notices())

    return [Route("/healthz", healthz), Route("/readyz", readyz)]


def _said(why_not: str, notices: tuple[str, ...] = ()) -> Response:
    """A probe goes by the code, and a person reads on."""
    return PlainTextResponse("\n".join((why_not or "ok", *notices)), status_code=503 if why_not else 200)
