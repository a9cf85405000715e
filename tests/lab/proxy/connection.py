"""One client's connection through the proxy, and what a fault does to it. Owner of its sockets on both sides."""

import contextlib
import errno
import os
import select
import socket
import ssl
import time
from dataclasses import dataclass
from http import HTTPStatus

from tests.lab.proxy import faults
from tests.lab.proxy.faults import Answer, Headers, Ledger, Request
from tests.lab.proxy.records import Exchange, ExchangeLog, ListRecords
from tests.lab.proxy.relay import Relay, Then, Turn
from tests.lab.proxy.wire import LostError, Message, StoppingError, Waiter, Wire, length_of, render_head

_HANDSHAKE_SECONDS = 5.0


@dataclass(frozen=True)
class Surroundings:
    """What all connections of one proxy share."""

    upstream: tuple[str, int]
    upstream_tls: ssl.SSLContext
    client_tls: ssl.SSLContext
    ledger: Ledger
    lists: ListRecords
    exchanges: ExchangeLog


class Connection:
    """Serves the requests of one client, one after the other, in the thread that calls run()."""

    def __init__(self, accepted: socket.socket, around: Surroundings) -> None:
        tls = around.client_tls.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False)
        self._around = around
        self._waiter = Waiter()
        self._client = Wire(tls, self._waiter)
        self._upstream: Wire | None = None

    def wake(self) -> None:
        self._waiter.wake()

    def stop(self) -> None:
        self._waiter.stop()

    def run(self) -> None:
        then = Then.KEEP
        try:
            with contextlib.suppress(OSError, StoppingError):
                self._client.handshake(time.monotonic() + _HANDSHAKE_SECONDS)
                while then is Then.KEEP:
                    then = self._serve_one()
        finally:
            self._drop_upstream()
            self._client.close(orderly=then is Then.CLOSE)
            self._waiter.close()

    def _serve_one(self) -> Then:
        head = self._client.read_head()
        method, _, rest = head.start.partition(" ")
        target, _, version = rest.rpartition(" ")
        if version != "HTTP/1.1":
            raise LostError(f"not a request this proxy knows: {head.start[:80]}")
        if head.get("expect"):
            self._client.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = b"".join(Message(self._client, head, length_of(head, without_length=0)).pieces())
        request = Request(method, target, head.end_to_end(), body)
        turn = Turn(
            request, Exchange(method, target, time.monotonic()), self._around.ledger.claim(request), head.closes
        )
        self._around.exchanges.add(turn.exchange)
        try:
            return self._meet(turn)
        finally:
            if turn.claim:
                turn.claim.settle()

    def _meet(self, turn: Turn) -> Then:
        match turn.act:
            case Answer() as refusal if turn.fire():
                return self._refuse(turn, refusal)
            case faults.Silence(after_events=None) if turn.fire():
                return self._hold(turn)
            case faults.Cut(before_upstream=True) if turn.fire():
                return Then.CUT
            case faults.OldList() as old:
                recorded = self._around.lists.find(turn.request, old)
                if recorded and turn.fire():
                    turn.exchange.status = 200
                    self._client.send(turn.opening("HTTP/1.1 200 OK", recorded.headers) + recorded.body)
                    return turn.then
            case faults.Delay(seconds=delay_seconds) if turn.fire():
                deadline = time.monotonic() + delay_seconds
                while time.monotonic() < deadline and not turn.cleared:
                    self._waiter.wait({}, deadline)
        return self._forward(turn)

    def _refuse(self, turn: Turn, refusal: Answer) -> Then:
        status = faults.status_object(refusal)
        headers: Headers = (("Content-Type", "application/json"), ("Content-Length", str(len(status))))
        if refusal.retry_after is not None:
            headers += (("Retry-After", str(refusal.retry_after)),)
        known = refusal.status in HTTPStatus.__members__.values()
        phrase = HTTPStatus(refusal.status).phrase if known else "Refused"
        turn.exchange.status = refusal.status
        opening = turn.opening(f"HTTP/1.1 {refusal.status} {phrase}", headers)
        self._client.send(opening if turn.request.method == "HEAD" else opening + status)
        return turn.then

    def _hold(self, turn: Turn) -> Then:
        self._drop_upstream()
        while not turn.cleared:
            if self._client.ended:
                raise LostError("the client went away")
            self._client.listen()
        return Then.CUT

    def _forward(self, turn: Turn) -> Then:
        try:
            answer = self._deliver(turn)
            if isinstance(turn.act, faults.Repeat) and not turn.request.is_watch and not turn.cleared:
                for _ in range(turn.act.times - 1):
                    answer.skip()
                    self._part_from(answer)
                    answer = self._deliver(turn)
                turn.fire()
        except OSError as error:
            if self._client.ended:
                raise
            self._drop_upstream()
            return self._refuse(turn, Answer(502, message=f"the API server could not be reached: {error}"))
        then = Relay(self._client, self._around.lists, turn, answer).run()
        if then is Then.HOLD:
            return self._hold(turn)
        self._part_from(answer)
        return then

    def _deliver(self, turn: Turn) -> Message:
        request = turn.request
        upstream = self._ready_upstream()
        upstream.send(render_head(f"{request.method} {request.target} HTTP/1.1", _headers_for(turn)) + request.body)
        turn.exchange.deliveries += 1
        # A write is seen through to its end: the API server may drop one half done whose client has gone.
        beside = self._client if request.method == "GET" else None
        head = upstream.read_head(beside)
        while head.status < 200:
            head = upstream.read_head(beside)
        without_body = request.method == "HEAD" or head.status in {204, 304}
        return Message(upstream, head, 0 if without_body else length_of(head, without_length=None), beside)

    def _ready_upstream(self) -> Wire:
        if self._upstream is not None:
            self._upstream.receive()
            # The API server closes connections that were idle; and nothing it says unasked is an answer.
            if self._upstream.ended or self._upstream.received:
                self._drop_upstream()
        if self._upstream is None:
            self._upstream = self._connect()
        return self._upstream

    def _connect(self) -> Wire:
        deadline = time.monotonic() + _HANDSHAKE_SECONDS
        with contextlib.ExitStack() as undo:
            plain = undo.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            plain.setblocking(False)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            error = plain.connect_ex(self._around.upstream)
            while error == errno.EINPROGRESS and time.monotonic() < deadline:
                if self._waiter.wait({plain.fileno(): select.POLLOUT}, deadline):
                    error = plain.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if error:
                raise OSError(error, os.strerror(error))
            tls = self._around.upstream_tls.wrap_socket(
                plain, do_handshake_on_connect=False, server_hostname=self._around.upstream[0]
            )
            undo.enter_context(tls)
            wire = Wire(tls, self._waiter)
            wire.handshake(deadline)
            undo.pop_all()
        return wire

    def _part_from(self, answer: Message) -> None:
        """Keeps the API server's connection for the next request, unless this answer has spoilt it."""
        if not answer.done or answer.head.closes:
            self._drop_upstream()

    def _drop_upstream(self) -> None:
        if self._upstream is not None:
            self._upstream.close(orderly=True)
            self._upstream = None


def _headers_for(turn: Turn) -> Headers:
    """What the API server is told: all the client said, but for how the body came, which is whole by now."""
    dropped = {"content-length"}
    added: Headers = ()
    if turn.request.is_watch and turn.claim:
        # Events can be told apart only in a stream that is not compressed.
        dropped.add("accept-encoding")
        added += (("Accept-Encoding", "identity"),)
    if turn.request.body or turn.request.header("content-length"):
        added += (("Content-Length", str(len(turn.request.body))),)
    return (*(pair for pair in turn.request.headers if pair[0].lower() not in dropped), *added)
