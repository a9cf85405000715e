"""HTTP connections with limits: how many at once, how many a client, and how long each step may take.

A connection over a limit is closed before anything is read. An exchange has one deadline, from its first byte, or the
opening of the connection, until its answer has been sent: whoever sends a header byte by byte, or does not read the
answer, is cut off. Between exchanges a connection stays open for a moment. So no client holds a place for long, and
none holds them all.
"""

import asyncio
from collections import Counter
from typing import Any, ClassVar

import msgspec
from uvicorn.protocols.http.h11_impl import H11Protocol

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
