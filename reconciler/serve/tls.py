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


class CertificatePair(msgspec.Struct, frozen=True):
    """A certificate chain and its private key, both PEM: of a server or of a client."""

    chain: bytes
    key: bytes


class TlsContext:
    """Owns the SSL context of a server, which is replaced as a whole. Handshakes before the first certificate fail.

    `load` must be called on the thread that serves. `client_authorities`: PEM; if given, only clients with a
    certificate of one of them finish a handshake. `client_name`: only clients with this common name are served.
    """

    def __init__(self, client_authorities: bytes | None = None, client_name: str = "") -> None:
        """Raises BadCertificate."""
        self._authorities = client_authorities
        self.client_name = client_name
        self.context = self._new_context(client_authorities)
        self.is_loaded = False

    def load(self, certificate: CertificatePair, client_authorities: bytes | None = None) -> None:
        """Serves new connections with this certificate, and verifies clients with these authorities, if any are given.
        Raises BadCertificate, and keeps the previous ones."""
        authorities = self._authorities if client_authorities is None else client_authorities
        context = self._new_context(authorities)
        with tempfile.TemporaryDirectory() as folder:  # OpenSSL reads the key from a file only; the folder is private
            chain, key = Path(folder, "tls.crt"), Path(folder, "tls.key")
            chain.write_bytes(certificate.chain)
            key.write_bytes(certificate.key)
            try:
                context.load_cert_chain(chain, key, password=_no_password)
            except (ssl.SSLError, ValueError) as fault:
                raise BadCertificate("the serving certificate does not match its key, or is damaged") from fault
        self.context, self._authorities, self.is_loaded = context, authorities, True

    def serves(self, transport: asyncio.BaseTransport) -> bool:
        """Whether the client may be served: by the common name of its certificate, which the handshake has verified."""
        if not self.client_name:
            return True
        subject = (transport.get_extra_info("peercert") or {}).get("subject", ())
        common_names = [value for part in subject for key, value in part if key == "commonName"]
        return common_names == [self.client_name]

    def _new_context(self, authorities: bytes | None) -> ssl.SSLContext:
        context = _server_context()
        if authorities is not None:
            try:
                context.load_verify_locations(cadata=authorities.decode("ascii"))
            except (ssl.SSLError, ValueError) as fault:
                raise BadCertificate("there is no certificate authority in PEM") from fault
        if authorities is not None or self.client_name:
            context.verify_mode = ssl.CERT_REQUIRED
        return context


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

    tls: ClassVar[TlsContext]
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
                self.tls.context,
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
        if not self.tls.serves(transport):
            transport.abort()
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
        "tls": tls,
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
