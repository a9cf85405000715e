"""HTTP/1.1 over TLS sockets that never block, so that a wait can end for more reasons than one."""

import contextlib
import select
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.lab.proxy.faults import Headers

_RECEIVE_BYTES = 65536
# fmt: off
_HOP_BY_HOP = {
    "connection", "expect", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te",
    "trailer", "transfer-encoding", "upgrade",
}
# fmt: on


class LostError(ConnectionError):
    """The other side went away, or broke the protocol, before a message was whole."""


class StoppingError(Exception):
    """The proxy stops: whatever was waited for is not waited for any more."""


class Waiter:
    """Owner of one connection's wake-up, by which other threads end its waits."""

    def __init__(self) -> None:
        self._ear, self._mouth = socket.socketpair()
        self._ear.setblocking(False)
        self._mouth.setblocking(False)
        self._lock = threading.Lock()
        self._stopping = False

    def wake(self) -> None:
        # Closed: nobody waits any more. Full: enough has been said already.
        with self._lock, contextlib.suppress(OSError):
            self._mouth.send(b"!")

    def stop(self) -> None:
        self._stopping = True
        self.wake()

    def close(self) -> None:
        with self._lock:
            self._ear.close()
            self._mouth.close()

    def wait(self, awaited: Mapping[int, int], deadline: float | None = None) -> set[int]:
        """The descriptors that are ready; none when the deadline passed or somebody called wake()."""
        poll = select.poll()
        poll.register(self._ear, select.POLLIN)
        for descriptor, events in awaited.items():
            poll.register(descriptor, events)
        # A deadline that passed still lets what is ready be seen.
        timeout = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
        ready = {descriptor for descriptor, _ in poll.poll(timeout)}
        if self._ear.fileno() in ready:
            with contextlib.suppress(BlockingIOError):
                self._ear.recv(4096)
        if self._stopping:
            raise StoppingError
        return ready - {self._ear.fileno()}


@dataclass(frozen=True)
class Head:
    """The first line and the headers of a request or an answer."""

    start: str
    headers: Headers

    @staticmethod
    def parse(raw: bytes) -> "Head":
        start, *lines = raw.decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in lines)
        return Head(start, tuple((name.strip(), value.strip()) for name, _, value in pairs))

    def get(self, name: str) -> str:
        return ", ".join(value for key, value in self.headers if key.lower() == name)

    @property
    def status(self) -> int:
        _, _, rest = self.start.partition(" ")
        if not rest[:3].isdigit():
            raise LostError(f"no answer begins with {self.start[:80]}")
        return int(rest[:3])

    @property
    def closes(self) -> bool:
        return "close" in self.get("connection").lower()

    @property
    def chunked(self) -> bool:
        return "chunked" in self.get("transfer-encoding").lower()

    def end_to_end(self) -> Headers:
        dropped = _HOP_BY_HOP | {name.strip() for name in self.get("connection").lower().split(",")}
        return tuple((name, value) for name, value in self.headers if name.lower() not in dropped)


def render_head(start: str, headers: Headers) -> bytes:
    lines = [start, *(f"{name}: {value}" for name, value in headers), "", ""]
    return "\r\n".join(lines).encode("latin-1")


class Wire:
    """One TLS connection to a client or to the API server. Owner of the bytes received and not yet used."""

    def __init__(self, tls_socket: ssl.SSLSocket, waiter: Waiter) -> None:
        self.received = bytearray()
        self.ended = False
        self._socket = tls_socket
        self._waiter = waiter

    def handshake(self, deadline: float) -> None:
        while True:
            try:
                return self._socket.do_handshake()
            except ssl.SSLWantReadError:
                events = select.POLLIN
            except ssl.SSLWantWriteError:
                events = select.POLLOUT
            if time.monotonic() > deadline:
                raise TimeoutError("the TLS handshake did not end in time")
            self._waiter.wait({self._socket.fileno(): events}, deadline)

    def receive(self) -> None:
        """Takes in what has arrived, without waiting."""
        try:
            part = self._socket.recv(_RECEIVE_BYTES)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return
        except OSError:
            part = b""
        self.received += part
        self.ended = not part

    def send(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[self._socket.send(rest) :]
            except ssl.SSLWantWriteError:
                self._waiter.wait({self._socket.fileno(): select.POLLOUT})
            except ssl.SSLWantReadError:
                self._waiter.wait({self._socket.fileno(): select.POLLIN})

    def read_head(self, beside: "Wire | None" = None) -> Head:
        while (end := self.received.find(b"\r\n\r\n")) < 0:
            if self.ended:
                raise LostError("the connection closed before a message began")
            self.listen(beside)
        head = Head.parse(bytes(self.received[:end]))
        del self.received[: end + 4]
        return head

    def listen(self, beside: "Wire | None" = None, deadline: float | None = None) -> None:
        """Waits until something arrives here; raises when the connection beside this one ends."""
        wires = [wire for wire in (self, beside) if wire is not None and not wire.ended]
        # What TLS has decrypted already no longer shows on the socket.
        if not self._socket.pending():
            ready = self._waiter.wait({wire.fileno(): select.POLLIN for wire in wires}, deadline)
            wires = [wire for wire in wires if wire.fileno() in ready]
        for wire in wires:
            wire.receive()
        if beside is not None and beside.ended:
            raise LostError("the client went away")

    def pause(self, deadline: float) -> None:
        """Lets time pass without listening, so that whether the other side went away makes no difference."""
        self._waiter.wait({}, deadline)

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self, *, orderly: bool) -> None:
        if orderly:
            # Says goodbye without waiting for the reply, so that a cut connection looks different.
            with contextlib.suppress(OSError, ValueError):
                self._socket.unwrap()
        self._socket.close()


class Body:
    """Takes one message's body out of what a connection receives. Owner of how much of it is still to come."""

    def __init__(self, length: int | None, *, chunked: bool) -> None:
        self.done = length == 0 and not chunked
        self._left_bytes = 0 if chunked else length
        self._chunked = chunked
        self._in_trailer = False

    def take(self, received: bytearray, *, ended: bool) -> bytes:
        if self._chunked:
            return self._take_chunks(received)
        part = bytes(received[: self._left_bytes])
        del received[: len(part)]
        if self._left_bytes is None:
            self.done = ended
        else:
            self._left_bytes -= len(part)
            self.done = self._left_bytes == 0
        return part

    def _take_chunks(self, received: bytearray) -> bytes:
        taken = bytearray()
        while received and not self.done:
            if self._left_bytes:
                part = received[: self._left_bytes]
                del received[: len(part)]
                self._left_bytes -= len(part)
                taken += part
            elif (end := received.find(b"\n")) >= 0:
                line = bytes(received[:end]).strip()
                del received[: end + 1]
                self._read_line(line)
            else:
                break
        return bytes(taken)

    def _read_line(self, line: bytes) -> None:
        if self._in_trailer:
            self.done = not line
        elif line:  # an empty one only ends the chunk before
            try:
                self._left_bytes = int(line.split(b";")[0], 16)
            except ValueError:
                raise LostError("a chunk without a size") from None
            self._in_trailer = self._left_bytes == 0


class Message:
    """A message whose head has come and whose body is coming."""

    def __init__(self, wire: Wire, head: Head, length: int | None, beside: Wire | None = None) -> None:
        self.head = head
        self.chunked = length is None
        self._body = Body(length, chunked=head.chunked and length is None)
        self._wire = wire
        self._beside = beside

    @property
    def done(self) -> bool:
        return self._body.done

    def next_piece(self, deadline: float | None = None) -> bytes | None:
        """What has come; b"" at the end, None when the deadline passed or the wait was ended by wake()."""
        piece = self._take()
        if not piece and not self.done:
            if self._wire.ended:
                raise LostError("the connection closed in the middle of a message")
            self._wire.listen(self._beside, deadline)
            piece = self._take()
        return piece if piece or self.done else None

    def pieces(self) -> Iterator[bytes]:
        while (piece := self.next_piece()) != b"":
            if piece is not None:
                yield piece

    def skip(self) -> None:
        for _ in self.pieces():
            pass

    def headers_onward(self) -> Headers:
        if not self.chunked:
            return self.head.end_to_end()
        plain = (pair for pair in self.head.end_to_end() if pair[0].lower() != "content-length")
        return (*plain, ("Transfer-Encoding", "chunked"))

    def framed(self, piece: bytes) -> bytes:
        """The piece as it is sent on: in the framing the body came in, or in chunks when it had none."""
        return b"%x\r\n%b\r\n" % (len(piece), piece) if self.chunked else piece

    def closing(self) -> bytes:
        return b"0\r\n\r\n" if self.chunked else b""

    def _take(self) -> bytes:
        return b"" if self.done else self._body.take(self._wire.received, ended=self._wire.ended)


def length_of(head: Head, *, without_length: int | None) -> int | None:
    """The length a message announces; None when it comes in chunks, or until the connection closes."""
    if head.chunked:
        return None
    announced = head.get("content-length")
    if announced and not announced.isdigit():
        raise LostError(f"a message of length {announced}")
    return int(announced) if announced else without_length
