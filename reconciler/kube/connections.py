"""Requests and whole responses over kept connections to one HTTP server.

urllib3 opens the connections, with its checks of certificates and host names, and its pool keeps them. The requests
and responses themselves are written and read here: http.client takes ten times the processor time for the head of a
response, which counts where thousands of Leases are written. Responses that arrive piece by piece, and servers behind a
proxy, are left to urllib3.
"""

import http.client
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import cast
from urllib.parse import urlsplit

import msgspec
from urllib3 import HTTPConnectionPool, PoolManager, ProxyManager, Timeout
from urllib3.connection import HTTPConnection
from urllib3.exceptions import ProtocolError, ReadTimeoutError, SSLError

_LARGEST_HEAD = 2**16
_PART = 2**16
_HEAD_END = b"\r\n\r\n"


class HttpRequest(msgspec.Struct, frozen=True):
    """`target`: path and query."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes | None = None


class Timeouts(msgspec.Struct, frozen=True):
    """Timeouts of requests to an API server."""

    connect_seconds: float = 5.0
    answer_seconds: float = 30.0


class HttpResponse(msgspec.Struct, frozen=True):
    """Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Connections:
    """Thread-safe. Owner of the list of connections that wait for a response."""

    def __init__(self, manager: PoolManager, url: str) -> None:
        """`url`: of the server; requests are below its path, if there is one."""
        self._manager, self._url = manager, url
        self._pool: HTTPConnectionPool = manager.connection_from_url(url)
        self._prefix = urlsplit(url).path.rstrip("/")
        self._lock = threading.Lock()
        self._waiting: set[socket.socket] = set()
        self._is_aborted = False

    def exchange(self, request: HttpRequest, timeouts: Timeouts) -> HttpResponse:
        """Sends once, without retries and redirects. Raises HTTPError, HTTPException and OSError."""
        if isinstance(self._manager, ProxyManager):
            return self._exchange_by_urllib3(request, timeouts)
        with self._connection(timeouts) as connection:
            sock = cast("socket.socket", connection.sock)
            with self._abortable(sock):
                try:
                    sock.settimeout(timeouts.answer_seconds)
                    sock.sendall(self._head(request, connection) + (request.body or b""))
                    response, is_kept = _Reader(sock).response()
                except TimeoutError as fault:
                    raise ReadTimeoutError(self._pool, request.target, "no response in time") from fault
            if not is_kept:
                connection.close()
            return response

    def _exchange_by_urllib3(self, request: HttpRequest, timeouts: Timeouts) -> HttpResponse:
        timeout = Timeout(connect=timeouts.connect_seconds, read=timeouts.answer_seconds)
        response = self._manager.request(
            request.method,
            self._url + request.target,
            body=request.body,
            headers=request.headers,
            timeout=timeout,
            retries=False,
            redirect=False,
        )
        return HttpResponse(response.status, {k.lower(): v for k, v in response.headers.items()}, response.data)

    def abort(self) -> None:
        """Ends the requests of other threads with an error, and refuses later requests."""
        with self._lock:
            self._is_aborted = True
            waiting = list(self._waiting)
        for each in waiting:
            with suppress(OSError):  # closed by the server
                # Not the method of SSLSocket, which would drop the state that the other thread reads with.
                socket.socket.shutdown(each, socket.SHUT_RDWR)

    @contextmanager
    def _connection(self, timeouts: Timeouts) -> Iterator[HTTPConnection]:
        """A kept connection that is still open, or a new one; kept only if the block ends without an error."""
        # urllib3 has no public way to its connections.
        connection = cast("HTTPConnection", self._pool._get_conn())  # noqa: SLF001
        try:
            if not connection.is_connected:
                _connect(connection, timeouts.connect_seconds)
            yield connection
        except BaseException:
            connection.close()
            raise
        finally:
            self._pool._put_conn(connection)  # noqa: SLF001

    @contextmanager
    def _abortable(self, sock: socket.socket) -> Iterator[None]:
        with self._lock:
            if self._is_aborted:
                raise ProtocolError("the connections have been closed")
            self._waiting.add(sock)
        try:
            yield
        finally:
            with self._lock:
                self._waiting.discard(sock)

    def _head(self, request: HttpRequest, connection: HTTPConnection) -> bytes:
        """Raises ValueError for a character that would begin another header."""
        host = f"[{connection.host}]" if ":" in connection.host else connection.host
        lines = [f"{request.method} {self._prefix}{request.target} HTTP/1.1", f"Host: {host}:{connection.port}"]
        lines += [f"{name}: {value}" for name, value in request.headers.items()]
        if request.body is not None:
            lines.append(f"Content-Length: {len(request.body)}")
        if any("\r" in line or "\n" in line for line in lines):
            raise ValueError("a header contains a line break")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _connect(connection: HTTPConnection, seconds: float) -> None:
    connection.timeout = seconds
    try:
        connection.connect()
    except (ssl.SSLError, ssl.CertificateError) as fault:
        raise SSLError(fault) from fault


class _Reader:
    """Reads one response from a socket. Owner of the bytes that were received and not used yet."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._left = b""

    def response(self) -> tuple[HttpResponse, bool]:
        """And whether the connection may be used again. Raises ProtocolError and OSError."""
        status, headers = self._head()
        while 100 <= status < 200:  # an interim response
            status, headers = self._head()
        body, is_bounded = self._body(status, headers)
        is_kept = is_bounded and not self._left and headers.get("connection", "").lower() != "close"
        return HttpResponse(status, headers, body), is_kept

    def _head(self) -> tuple[int, dict[str, str]]:
        text = self._until(_HEAD_END).decode("latin-1")
        first, *lines = text.split("\r\n")
        version, _, rest = first.partition(" ")
        code = rest[:3]
        if version not in {"HTTP/1.1", "HTTP/1.0"} or not (code.isascii() and code.isdigit() and len(code) == 3):
            raise ProtocolError("the response does not begin with a status line")
        headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in lines)}
        if version == "HTTP/1.0":
            headers.setdefault("connection", "close")
        return int(code), headers

    def _body(self, status: int, headers: Mapping[str, str]) -> tuple[bytes, bool]:
        """And whether its end was marked other than by the end of the connection."""
        if status in {204, 304}:
            return b"", True
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return b"".join(self._chunks()), True
        length = headers.get("content-length")
        if length is None:
            return self._rest(), False
        if not (length.isascii() and length.isdigit()):
            raise ProtocolError("the response has a bad Content-Length")
        return self._exactly(int(length)), True

    def _chunks(self) -> Iterator[bytes]:
        while True:
            size = self._until(b"\r\n").partition(b";")[0].strip()
            try:
                count = int(size, 16)
            except ValueError:
                count = -1
            if count < 0:
                raise ProtocolError("the response has a bad chunk")
            if count == 0:
                break
            yield self._exactly(count)
            if self._exactly(2) != b"\r\n":
                raise ProtocolError("the response has a bad chunk")
        while self._until(b"\r\n"):  # trailers
            pass

    def _until(self, mark: bytes) -> bytes:
        """What precedes the mark, which is skipped."""
        while (at := self._left.find(mark)) < 0:
            if len(self._left) > _LARGEST_HEAD:
                raise ProtocolError("the head of the response is too long")
            self._left += self._received()
        found, self._left = self._left[:at], self._left[at + len(mark) :]
        return found

    def _exactly(self, count: int) -> bytes:
        if len(self._left) < count:
            parts, missing = [self._left], count - len(self._left)
            while missing > 0:
                parts.append(self._received())
                missing -= len(parts[-1])
            self._left = b"".join(parts)
        found, self._left = self._left[:count], self._left[count:]
        return found

    def _rest(self) -> bytes:
        parts = [self._left]
        while part := self._sock.recv(_PART):
            parts.append(part)
        self._left = b""
        return b"".join(parts)

    def _received(self) -> bytes:
        part = self._sock.recv(_PART)
        if not part:
            raise http.client.RemoteDisconnected("the server closed the connection without a complete response")
        return part
