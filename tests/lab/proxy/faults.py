"""The faults a test can order and the requests they meet. Owner of the orders and their counts."""

import json
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Delay:
    """The request reaches the API server late, even when its client has given up by then."""

    seconds: float


@dataclass(frozen=True)
class DelayAnswer:
    """The request is forwarded at once; every part of the answer, so each watch event, comes that much later."""

    seconds: float


@dataclass(frozen=True)
class Cut:
    """The connection closes after that many bytes of the answer's body, or before the API server saw the request."""

    after_bytes: int = 0
    before_upstream: bool = False


@dataclass(frozen=True)
class Repeat:
    """The request is delivered that many times and the last answer returned; of a watch, each event is repeated."""

    times: int = 2


@dataclass(frozen=True)
class OldList:
    """The first answer recorded to the same list is given again, or the last one. Later pages are left alone."""

    first: bool = True


@dataclass(frozen=True)
class Answer:
    """The proxy refuses the request itself, the way the API server would."""

    status: int
    reason: str | None = None
    message: str | None = None
    retry_after: int | None = None


@dataclass(frozen=True)
class Silence:
    """The request is taken and never answered. With after_events: a watch that stays open and falls silent."""

    after_events: int | None = None


@dataclass(frozen=True)
class LoseAnswer:
    """The API server does what was asked and its answer is lost with the connection. Not for watches."""


@dataclass(frozen=True)
class WatchError:
    """The watch tells of an error, 410 unless another code is asked for, and ends.

    With naming: only events that hold this text are counted. A controller's own event may come before a test's.
    """

    code: int = 410
    after_events: int = 0
    naming: bytes = b""


@dataclass(frozen=True)
class EndWatch:
    """The watch ends the way it does when its time is up."""

    after_events: int = 0


@dataclass(frozen=True)
class Garbage:
    """The watch brings something that is no event, half of one unless told otherwise, and closes."""

    after_events: int = 0
    payload: bytes = b'{"type":"MODIFIED","object":{"kind":"No'


WatchAct = WatchError | EndWatch | Garbage
Act = Delay | DelayAnswer | Cut | Repeat | OldList | Answer | Silence | LoseAnswer | WatchAct


@dataclass(frozen=True)
class Request:
    """What a client asked, whole."""

    method: str
    target: str
    headers: Headers = ()
    body: bytes = b""

    def header(self, name: str) -> str:
        return ", ".join(value for key, value in self.headers if key.lower() == name)

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))

    @property
    def is_watch(self) -> bool:
        return self.method == "GET" and "watch=" in self.target and self.query.get("watch") in {"true", "1"}

    @property
    def verb(self) -> str:
        """The verb the API server authorises: get, list, watch, create, update, patch, delete, deletecollection."""
        segments = urlsplit(self.target).path.strip("/").split("/")
        rest = segments[{"api": 2, "apis": 3}.get(segments[0], len(segments)) :]
        # A namespace has parts of its own; anything else below its name is a resource inside it.
        if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in {"status", "finalize"}:
            rest = rest[2:]
        if self.is_watch:
            return "watch"
        if not rest:
            return self.method.lower()
        if self.method in {"GET", "DELETE"}:
            return self.method.lower() if len(rest) > 1 else {"GET": "list", "DELETE": "deletecollection"}[self.method]
        return {"POST": "create", "PUT": "update"}.get(self.method, self.method.lower())


@dataclass(frozen=True)
class Match:
    """Which requests: those for which everything given is so. The path is searched, with its query, for a pattern."""

    method: str | None = None
    path: str | None = None
    watch: bool | None = None
    verb: str | None = None
    body: str | None = None

    def __post_init__(self) -> None:
        re.compile(self.path or "")  # a mistake shows where it was made, not where a request meets it

    def accepts(self, request: Request) -> bool:
        return (
            (self.method is None or self.method.upper() == request.method)
            and (self.path is None or re.search(self.path, request.target) is not None)
            and (self.watch is None or self.watch == request.is_watch)
            and (self.verb is None or self.verb == request.verb)
            and (self.body is None or self.body.encode() in request.body)
        )


@dataclass(frozen=True)
class Fault:
    """One order: what to do, to which requests, how often (None: until cleared), after letting how many pass."""

    act: Act
    when: Match = field(default_factory=Match)
    times: int | None = 1
    skip: int = 0


_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


def status_object(answer: Answer) -> bytes:
    """The Status an API server explains a refusal with."""
    reason = answer.reason if answer.reason is not None else _REASONS.get(answer.status)
    status: dict[str, object] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    status["message"] = answer.message or f"the lab's proxy answers {answer.status}"
    if reason:
        status["reason"] = reason
    if answer.retry_after is not None:
        status["details"] = {"retryAfterSeconds": answer.retry_after}
    status["code"] = answer.status
    return json.dumps(status, separators=(",", ":")).encode()


@dataclass
class _Order:
    fault: Fault
    passed: int = 0
    claimed: int = 0
    fired: int = 0
    cleared: bool = False


class Ledger:
    """Owner of the faults ordered, in their order, and of how often each was claimed and fired."""

    def __init__(self, can_recall: Callable[[Request, OldList], bool]) -> None:
        self._can_recall = can_recall
        self._orders: list[_Order] = []
        self._past: list[_Order] = []
        self._changed = threading.Condition()

    def order(self, fault: Fault) -> None:
        with self._changed:
            self._orders.append(_Order(fault))

    def clear(self) -> None:
        with self._changed:
            for order in self._orders:
                order.cleared = True
            self._past, self._orders = self._orders, []
            self._changed.notify_all()

    def claim(self, request: Request) -> "Claim | None":
        """The first fault that matches and has times left is set aside for this request."""
        with self._changed:
            for order in self._orders:
                times = order.fault.times
                if (times is not None and order.claimed >= times) or not self._concerns(order.fault, request):
                    continue
                if order.passed < order.fault.skip:
                    order.passed += 1
                    continue
                order.claimed += 1
                return Claim(order, self._changed)
        return None

    def _concerns(self, fault: Fault, request: Request) -> bool:
        if not fault.when.accepts(request):
            return False
        match fault.act:
            case WatchError() | EndWatch() | Garbage() | Silence(after_events=int()):
                return request.is_watch
            case LoseAnswer():
                return not request.is_watch
            case OldList() as old:
                return self._can_recall(request, old)
        return True

    def wait_for(self, fault: Fault, timeout_seconds: float) -> None:
        with self._changed:
            order = _order_of(fault, (*self._past, *self._orders))
            if not self._changed.wait_for(lambda: order.fired >= (fault.times or 1), timeout_seconds):
                raise TimeoutError(f"{fault} fired {order.fired} times in {timeout_seconds} s")


def _order_of(fault: Fault, orders: Sequence[_Order]) -> _Order:
    for order in reversed(orders):
        if order.fault is fault:
            return order
    raise LookupError(f"{fault} was not injected")


class Claim:
    """One fault set aside for one request: it fires when it takes hold, or is given back."""

    def __init__(self, order: _Order, changed: threading.Condition) -> None:
        self.fault = order.fault
        self._order = order
        self._changed = changed
        self._fired = False

    @property
    def cleared(self) -> bool:
        return self._order.cleared

    def fire(self) -> bool:
        """Counts the fault as fired; False when it was cleared before it took hold."""
        with self._changed:
            if self._order.cleared:
                return False
            self._fired = True
            self._order.fired += 1
            self._changed.notify_all()
            return True

    def settle(self) -> None:
        """Gives back a fault that never took hold, as of a watch that ended early."""
        with self._changed:
            if not self._fired:
                self._order.claimed -= 1
