"""TLS for servers of serve/server.py: handshakes with limits, and a certificate that can be replaced while serving.

asyncio makes a protocol's connection only after the handshake, so the limits of the HTTP protocol do not cover a client
that opens connections and sends nothing. Here a connection counts from the moment it is accepted, and its handshake has
the deadline of an exchange.
"""

import asyncio
import contextlib
import ssl
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar, cast

import msgspec

# --- Certificate.


class BadCertificate(ValueError):
    """The certificate or its key cannot be used."""


class ServingCertificate(msgspec.Struct, frozen=True):
    """A certificate chain and its private key, both PEM."""

    chain: bytes
    key: bytes


class TlsContext:
    """Owns the SSL context of a server. Handshakes before the first certificate fail.

    `load` must be called on the thread that serves: a handshake between the two halves of a new pair would fail.
    `client_authorities`: PEM; if given, only clients with a certificate of one of them finish a handshake.
    """

    def __init__(self, client_authorities: bytes | None = None) -> None:
        """Raises BadCertificate."""
        self.context = _server_context()
        self.is_loaded = False
        if client_authorities is not None:
            try:
                self.context.load_verify_locations(cadata=client_authorities.decode("ascii"))
            except (ssl.SSLError, ValueError) as fault:
                raise BadCertificate("there is no certificate authority in PEM") from fault
            self.context.verify_mode = ssl.CERT_REQUIRED

    def load(self, certificate: ServingCertificate) -> None:
        """Serves new connections with this certificate. Raises BadCertificate, and keeps the previous one."""
        with tempfile.TemporaryDirectory() as folder:  # OpenSSL reads the key from a file only; the folder is private
            chain, key = Path(folder, "tls.crt"), Path(folder, "tls.key")
            chain.write_bytes(certificate.chain)
            key.write_bytes(certificate.key)
            for context in (_server_context(), self.context):  # tried on another context first
                try:
                    context.load_cert_chain(chain, key, password=_no_password)
                except (ssl.SSLError, ValueError) as fault:
                    raise BadCertificate("the serving certificate does not match its key, or is damaged") from fault
        self.is_loaded = True


def _server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _no_password() -> str:
    """Otherwise OpenSSL would ask on the terminal for the password of an encrypted key."""
    raise ValueError("the key is encrypted")


# --- Handshakes.

_SHUTDOWN_SECONDS = 1.0


class _EarlyBytes(asyncio.Protocol):
    """Keeps what arrives between the end of the handshake and the start of the HTTP protocol."""

    def __init__(self) -> None:
        self.received = b""
        self.is_lost = False

    def data_received(self, data: bytes) -> None:
        self.received += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True


class TlsProtocol(asyncio.Protocol):
    """A connection until the end of its handshake. `secured` makes the class of a server."""

    context: ClassVar[ssl.SSLContext]
    http: ClassVar[type[asyncio.Protocol]]
    connections: ClassVar[int]
    of_one_client: ClassVar[int]
    handshake_seconds: ClassVar[float]
    clients: ClassVar[Counter[str]]  # in their handshake
    handshakes: ClassVar[set[asyncio.Task[None]]]

    def __init__(self, **of_uvicorn: Any) -> None:
        self._of_uvicorn = of_uvicorn

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        accepted = cast("asyncio.Transport", transport)
        peer = accepted.get_extra_info("peername")
        address = str(peer[0]) if peer else "unknown"
        if self.clients.total() >= self.connections or self.clients[address] >= self.of_one_client:
            accepted.abort()
            return
        self.clients[address] += 1
        task = asyncio.get_running_loop().create_task(self._handshake(accepted, address))
        self.handshakes.add(task)
        task.add_done_callback(self.handshakes.discard)

    async def _handshake(self, accepted: asyncio.Transport, address: str) -> None:
        early = _EarlyBytes()
        try:
            transport = await asyncio.get_running_loop().start_tls(
                accepted,
                early,
                self.context,
                server_side=True,
                ssl_handshake_timeout=self.handshake_seconds,
                ssl_shutdown_timeout=_SHUTDOWN_SECONDS,
            )
        except (OSError, RuntimeError):  # asyncio has closed the connection
            return
        finally:
            self.clients[address] -= 1
            if not self.clients[address]:
                del self.clients[address]
        if transport is None or early.is_lost:
            return
        protocol = self.http(**self._of_uvicorn)
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        if early.received:
            protocol.data_received(early.received)


class HandshakeLimits(msgspec.Struct, frozen=True):
    """Limits of connections that have not finished their handshake."""

    connections: int
    of_one_client: int
    seconds: float


def secured(http: type[asyncio.Protocol], tls: TlsContext, limits: HandshakeLimits) -> type[TlsProtocol]:
    """The class of all connections of one server that speaks HTTP over TLS."""
    own: dict[str, Any] = {
        "context": tls.context,
        "http": http,
        "connections": limits.connections,
        "of_one_client": limits.of_one_client,
        "handshake_seconds": limits.seconds,
        "clients": Counter[str](),
        "handshakes": set[asyncio.Task[None]](),
    }
    return type("TlsProtocolOfServer", (TlsProtocol,), own)


async def end_handshakes(protocol: type[TlsProtocol]) -> None:
    """Ends the handshakes of a server that stops."""
    for task in tuple(protocol.handshakes):
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
