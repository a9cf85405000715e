"""How an answer travels from the API server to the client, and what a fault does to it on the way."""

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from tests.lab.proxy import faults
from tests.lab.proxy.faults import Act, Answer, Claim, Headers, Request
from tests.lab.proxy.records import Exchange, ListRecords, RecordedList
from tests.lab.proxy.wire import Message, Wire, render_head


class Then(Enum):
    """What becomes of the client's connection after an answer."""

    KEEP = auto()
    CLOSE = auto()
    CUT = auto()
    HOLD = auto()


@dataclass
class Turn:
    """One request being served, with the fault set aside for it."""

    request: Request
    exchange: Exchange
    claim: Claim | None
    closes: bool

    @property
    def act(self) -> Act | None:
        return self.claim.fault.act if self.claim else None

    @property
    def cleared(self) -> bool:
        return self.claim is None or self.claim.cleared

    @property
    def then(self) -> Then:
        return Then.CLOSE if self.closes else Then.KEEP

    def fire(self) -> bool:
        if self.claim is None:
            return False
        # First, so that who waits for the fault finds it in the exchange.
        self.exchange.fault = self.claim.fault
        if self.claim.fire():
            return True
        self.exchange.fault = None
        return False

    def opening(self, start: str, headers: Headers) -> bytes:
        return render_head(start, (*headers, ("Connection", "close")) if self.closes else headers)


class Relay:
    """Takes one answer to the client."""

    def __init__(self, client: Wire, lists: ListRecords, turn: Turn, answer: Message) -> None:
        self._client = client
        self._lists = lists
        self._turn = turn
        self._answer = answer

    def run(self) -> Then:
        turn, answer = self._turn, self._answer
        is_stream = turn.request.is_watch and answer.head.status == 200
        match turn.act:
            case faults.LoseAnswer() if not turn.cleared:
                answer.skip()
                turn.fire()
                return Then.CUT
            case faults.DelayAnswer(seconds=delay_seconds) if turn.fire():
                return self._late(delay_seconds)
            case faults.Cut(after_bytes=limit):
                return self._until_fault(_mark_bytes(limit, answer.pieces()))
            case faults.Repeat(times=times) if is_stream:
                return self._repeated(times)
            case faults.WatchError(after_events=limit, naming=naming) if is_stream:
                return self._until_fault(_mark_events(limit, answer.pieces(), naming))
            case faults.EndWatch() | faults.Garbage() | faults.Silence() as act if is_stream:
                return self._until_fault(_mark_events(act.after_events or 0, answer.pieces()))
        return self._listed() if answer.head.status == 200 and self._lists.wants(turn.request) else self._streamed()

    def _streamed(self) -> Then:
        self._client.send(self._opening())
        for piece in self._answer.pieces():
            self._client.send(self._answer.framed(piece))
        return self._finished()

    def _listed(self) -> Then:
        body = b"".join(self._answer.pieces())
        plain = (pair for pair in self._answer.head.end_to_end() if pair[0].lower() != "content-length")
        recorded = RecordedList((*plain, ("Content-Length", str(len(body)))), body)
        # Kept before the client has it, so that it is known when the client asks again.
        self._lists.keep(self._turn.request, recorded)
        self._turn.exchange.status = self._answer.head.status
        self._client.send(self._turn.opening(self._answer.head.start, recorded.headers) + body)
        return self._turn.then

    def _late(self, delay_seconds: float) -> Then:
        """Every part leaves that long after it came: time is shifted, not stretched."""
        answer, turn = self._answer, self._turn
        opening = turn.opening(answer.head.start, answer.headers_onward())
        due = deque([(time.monotonic() + delay_seconds, opening)])
        ended = False
        while due or not ended:
            if due and (turn.cleared or due[0][0] <= time.monotonic()):
                turn.exchange.status = answer.head.status
                self._client.send(due.popleft()[1])
            elif ended:
                self._client.pause(due[0][0])
            elif (piece := answer.next_piece(due[0][0] if due else None)) is not None:
                ended = not piece
                part = answer.framed(piece) if piece else answer.closing()
                due.append((time.monotonic() + delay_seconds, part))
        return turn.then

    def _repeated(self, times: int) -> Then:
        self._client.send(self._opening())
        fired = False
        for event in _events(self._answer.pieces()):
            fired = fired or self._turn.fire()
            copies = times if fired and not self._turn.cleared else 1
            self._client.send(self._answer.framed(event) * copies)
        return self._finished()

    def _until_fault(self, parts: Iterator[bytes | None]) -> Then:
        self._client.send(self._opening())
        for part in parts:
            if part is not None:
                self._client.send(self._answer.framed(part))
            elif self._turn.fire():
                return self._faulty_end()
        return self._finished()

    def _faulty_end(self) -> Then:
        match self._turn.act:
            case faults.Cut():
                return Then.CUT
            case faults.Silence():
                return Then.HOLD
            case faults.WatchError(code=code):
                event = b'{"type":"ERROR","object":%b}\n' % faults.status_object(Answer(code))
                self._client.send(self._answer.framed(event))
            case faults.Garbage(payload=payload):
                self._client.send(self._answer.framed(payload) + self._answer.closing())
                return Then.CLOSE
        return self._finished()

    def _finished(self) -> Then:
        self._client.send(self._answer.closing())
        return self._turn.then

    def _opening(self) -> bytes:
        self._turn.exchange.status = self._answer.head.status
        return self._turn.opening(self._answer.head.start, self._answer.headers_onward())


def _events(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """A watch, line by line, whatever the pieces it came in."""
    begun = b""
    for piece in pieces:
        *lines, begun = (begun + piece).split(b"\n")
        for line in lines:
            yield line + b"\n"
    if begun:
        yield begun


def _mark_events(limit: int, pieces: Iterator[bytes], naming: bytes = b"") -> Iterator[bytes | None]:
    """The events, and None where that many that hold the text have passed: a watch may never bring the next one."""
    passed = 0
    if limit == 0:
        yield None
    for event in _events(pieces):
        yield event
        if naming in event:
            passed += 1
            if passed == limit:
                yield None


def _mark_bytes(limit: int, pieces: Iterator[bytes]) -> Iterator[bytes | None]:
    """The pieces, and None where that many bytes have passed, at the latest where the body ends."""
    left = limit
    if left == 0:
        yield None
    for piece in pieces:
        if 0 < left <= len(piece):
            yield piece[:left]
            yield None
            if piece[left:]:
                yield piece[left:]
            left = 0
        else:
            yield piece
            left = max(0, left - len(piece))
    if left:
        yield None
