"""The HTTP servers of a running reconciler; owner of the socket that each listens on."""

import contextlib
import socket
from collections.abc import Iterator

import msgspec
import uvicorn
from starlette.applications import Starlette

from reconciler.serve.bounded_protocol import LARGEST_HEADER, LIMITS, ConnectionLimits, bounded

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
