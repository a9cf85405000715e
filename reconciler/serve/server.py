"""HTTP servers of a running reconciler. Each owns its listening socket."""

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

from reconciler.serve.tls import HandshakeLimits, TlsContext, TlsProtocol, end_handshakes, secured

# --- HTTP connections with limits: in total, per client, and on the duration of each step.
#
# A connection over a limit is closed before anything is read. An exchange has one deadline, from its first byte, or the
# opening of the connection, until its answer has been sent: clients that send a header byte by byte, or do not read the
# answer, are disconnected. Between exchanges a connection stays open briefly. So no client occupies a connection for
# long, and none occupies them all.

LARGEST_HEADER = 16_384  # bytes


class ConnectionLimits(msgspec.Struct, frozen=True):
    connections: int = 128
    of_one_client: int = 32
    exchange_seconds: float = 10.0
    idle_seconds: int = 5


LIMITS = ConnectionLimits()


class BoundedProtocol(H11Protocol):
    """One connection. Owns its deadline. `bounded` makes the class of a server, which counts its clients."""

    limits: ClassVar[ConnectionLimits] = LIMITS
    clients: ClassVar[Counter[str]] = Counter()

    _address = ""  # of the client, once the connection counts
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
        if not self._address:  # data sent before the connection was refused
            return
        if self._deadline is None:
            self._begin()
        super().data_received(data)

    def on_response_complete(self) -> None:
        self._end()
        super().on_response_complete()

    def timeout_keep_alive_handler(self) -> None:
        """Closes the connection, also if the client does not read the answer."""
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


_GRACE_SECONDS = 1  # for pending answers at shutdown


class ListenAddress(msgspec.Struct, frozen=True):
    """Address to listen on; port 0 selects any free port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Server:
    """Binds its address immediately, so that an address in use is reported at once. Raises OSError.

    `tls`: the context for HTTPS; its certificates may be replaced while the server runs.
    """

    def __init__(
        self,
        address: ListenAddress,
        application: Starlette,
        limits: ConnectionLimits = LIMITS,
        tls: TlsContext | None = None,
    ) -> None:
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        self._socket = socket.create_server((address.host, address.port), family=family, backlog=limits.connections)
        # asyncio does so only for sockets that name their protocol, which these do not. Accepted sockets inherit the
        # option. Without it, the body of an answer waits 40 ms for the client's delayed acknowledgement of the headers.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._protocol: type[asyncio.Protocol] = bounded(limits)
        if tls is not None:
            handshakes = HandshakeLimits(limits.connections, limits.of_one_client, limits.exchange_seconds)
            self._protocol = secured(self._protocol, tls, handshakes)
        configuration = uvicorn.Config(
            application,
            log_config=None,
            access_log=False,
            lifespan="off",
            http=self._protocol,
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
        """Runs until stopped."""
        try:
            await self._server.serve([self._socket])
            if issubclass(self._protocol, TlsProtocol):
                await end_handshakes(self._protocol)
        finally:
            self._socket.close()

    def stop(self) -> None:
        """Stops the server. Call from the serving thread."""
        self._server.should_exit = True


class _Quiet(uvicorn.Server):
    """Signals are handled by the process, not by its server."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


# --- Endpoints for operators: liveness, readiness, and metrics.
#
# Probes may have a separate server, so that clients that occupy the connections of the other server do not cause a
# restart.

METRICS_TYPE = "text/plain; version=1.0.0; charset=utf-8"

Why = Callable[[], str]


class Answers(msgspec.Struct, frozen=True):
    """Callbacks on the main thread; none blocks."""

    why_unhealthy: Why  # empty if healthy
    why_unready: Why  # empty if ready
    metrics: Callable[[], bytes]
    notices: Callable[[], tuple[str, ...]] = tuple  # warnings while ready, one line each


def application(answers: Answers) -> Starlette:
    async def metrics(_: Request) -> Response:
        return Response(answers.metrics(), media_type=METRICS_TYPE)

    return Starlette(routes=[*_probes(answers), Route("/metrics", metrics)])


def probes(answers: Answers) -> Starlette:
    """Routes of the probes: liveness and readiness."""
    return Starlette(routes=_probes(answers))


def _probes(answers: Answers) -> list[Route]:

    async def healthz(_: Request) -> Response:
        return _said(answers.why_unhealthy())

    async def readyz(_: Request) -> Response:
        return _said(answers.why_unready(), answers.notices())

    return [Route("/healthz", healthz), Route("/readyz", readyz)]


def _said(why_not: str, notices: tuple[str, ...] = ()) -> Response:
    """The status code is for the probe, the text for people."""
    return PlainTextResponse("\n".join((why_not or "ok", *notices)), status_code=503 if why_not else 200)
