"""What the proxy remembers: the exchanges, and list answers to give again. Owner of the recorded lists."""

import threading
from collections import deque
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit

from tests.lab.proxy.faults import Fault, Headers, OldList, Request


@dataclass
class Exchange:
    """One request and what became of it; it fills in while the request is under way."""

    method: str
    path: str
    started_seconds: float
    status: int | None = None
    fault: Fault | None = None
    deliveries: int = 0

    @property
    def reached_upstream(self) -> bool:
        return self.deliveries > 0


class ExchangeLog:
    """Owner of the order in which the last 50,000 requests came."""

    def __init__(self) -> None:
        self._exchanges: deque[Exchange] = deque(maxlen=50_000)
        self._lock = threading.Lock()

    def add(self, exchange: Exchange) -> None:
        with self._lock:
            self._exchanges.append(exchange)

    def all(self) -> list[Exchange]:
        with self._lock:
            return list(self._exchanges)


@dataclass(frozen=True)
class RecordedList:
    """One answer to a list, as it was."""

    headers: Headers
    body: bytes


class ListRecords:
    """Owner of the first and the last answer to each list, of at most 256 different lists."""

    def __init__(self) -> None:
        self.recording = True
        self._kept: dict[str, tuple[RecordedList, RecordedList]] = {}
        self._lock = threading.Lock()

    def wants(self, request: Request) -> bool:
        return self.recording and _is_first_page(request)

    def keep(self, request: Request, recorded: RecordedList) -> None:
        key = _list_key(request)
        with self._lock:
            if key in self._kept or len(self._kept) < 256:
                first, _ = self._kept.get(key, (recorded, recorded))
                self._kept[key] = (first, recorded)

    def find(self, request: Request, old: OldList) -> RecordedList | None:
        if not _is_first_page(request):
            return None
        with self._lock:
            first, last = self._kept.get(_list_key(request), (None, None))
        return first if old.first else last

    def forget(self) -> None:
        with self._lock:
            self._kept.clear()


def _is_first_page(request: Request) -> bool:
    return request.verb == "list" and "continue" not in request.query


def _list_key(request: Request) -> str:
    asked = {
        name: value
        for name, value in sorted(request.query.items())
        if name not in {"resourceVersion", "resourceVersionMatch"}
    }
    # The form asked for belongs to the question: a table is no answer to who wants objects.
    form = (request.header("accept"), request.header("accept-encoding"))
    return " ".join((urlsplit(request.target).path, urlencode(asked), *form))
