"""The only way to write while a plan is executed: fenced, rate-limited and retried.

The fence is checked just before each request, including retries, and while waiting.
"""

import threading
import time
from collections.abc import Callable
from enum import Enum, auto
from typing import Any

import msgspec

from reconciler.kube.api_server import ApiRequest, ApiResponse, BadPath, Writer, WrittenObject, folder
from reconciler.kube.apply.verbs import path_of
from reconciler.kube.decode import Undecodable, page, refused_words
from reconciler.kube.placeholders import StandIn
from reconciler.kube.watch.changes import said
from reconciler.model.cluster.kinds import RESOURCE_KINDS
from reconciler.model.cluster.pod import Pod
from reconciler.model.parsers import is_object_name, shortened
from reconciler.model.plan.decision import Ref
from reconciler.ports import Fence
from reconciler.protocol.patches import conflict

# --- The meaning of a response to a write: a table; the first matching line applies.


class Meaning(Enum):
    """What follows from a response."""

    DONE = auto()
    MOVED = auto()  # the object has changed: read again immediately
    LATER = auto()  # the API server asks for a delay: read again after a while
    DOUBTFUL = auto()  # as LATER, but the write may have taken effect
    BLOCKED = auto()  # refused for now; a short wait does not help
    REFUSED = auto()


class _Cause(msgspec.Struct, frozen=True):
    reason: str = ""
    message: str = ""
    field: str = ""


class _Details(msgspec.Struct, frozen=True, rename="camel"):
    causes: tuple[_Cause, ...] | None = ()
    retry_after_seconds: int = 0


class ApiStatus(msgspec.Struct, frozen=True):
    """The used fields of Kubernetes' Status."""

    reason: str = ""
    message: str = ""
    details: _Details | None = None

    @property
    def causes(self) -> tuple[_Cause, ...]:
        return (self.details.causes or ()) if self.details else ()


class _ResponseRule(msgspec.Struct, frozen=True):
    fits: Callable[[int, ApiStatus], bool]
    meaning: Meaning


# A 500 is a server error; these two messages announce themselves as temporary.
_PASSING = ("etcdserver: ", "please try again")
_OF_A_BUDGET = "DisruptionBudget"
_OF_A_FIELD = "FieldManagerConflict"

_TABLE = (
    _ResponseRule(lambda status, _: 200 <= status < 300, Meaning.DONE),
    _ResponseRule(lambda status, api_status: status == 429 and _has(api_status, _OF_A_BUDGET), Meaning.BLOCKED),
    _ResponseRule(lambda status, _: status == 429, Meaning.LATER),
    _ResponseRule(lambda status, api_status: status == 409 and _has(api_status, _OF_A_FIELD), Meaning.REFUSED),
    # 404: the object is gone, or the kind or subresource is not served; the next read tells which.
    _ResponseRule(lambda status, _: status in {404, 409, 410}, Meaning.MOVED),
    _ResponseRule(lambda status, _: status == 504, Meaning.DOUBTFUL),
    _ResponseRule(lambda status, _: status == 503, Meaning.LATER),
    _ResponseRule(lambda status, api_status: status == 500 and _passes(api_status), Meaning.DOUBTFUL),
    _ResponseRule(lambda *_: True, Meaning.REFUSED),
)


def meaning_of(answer: ApiResponse) -> Meaning:
    """Total: every response has a meaning."""
    refusal = refusal_of(answer)
    return next(line.meaning for line in _TABLE if line.fits(answer.status, refusal))


def refusal_of(answer: ApiResponse) -> ApiStatus:
    """The Status of a response; empty if the response has none."""
    try:
        return msgspec.json.decode(answer.body, type=ApiStatus)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ApiStatus()


def uid_in(answer: ApiResponse) -> str:
    """The uid of the written object; empty if the response is not an object."""
    try:
        return msgspec.json.decode(answer.body, type=WrittenObject).metadata.uid
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""


def error_text(answer: ApiResponse) -> str:
    """A message for users: the conflicting field manager, the budget, or the API server's message."""
    refusal = refusal_of(answer)
    if fields := [(each.message, each.field) for each in refusal.causes if each.reason == _OF_A_FIELD]:
        return conflict((_owner(message), field.removeprefix(".")) for message, field in fields)
    budgets = [each.message for each in refusal.causes if each.reason == _OF_A_BUDGET and each.message]
    return budgets[0] if budgets else f"the API server responded {said(answer)}"


def _owner(message: str) -> str:
    """Extracts the field manager from: conflict with "kubectl-edit" using v1 at ..."""
    return message.partition('"')[2].partition('"')[0] or message


def _has(refusal: ApiStatus, reason: str) -> bool:
    return any(each.reason == reason for each in refusal.causes)


def _passes(refusal: ApiStatus) -> bool:
    is_asked_again = refusal.details is not None and refusal.details.retry_after_seconds > 0
    return is_asked_again or refusal.reason == "ServerTimeout" or any(each in refusal.message for each in _PASSING)


# --- Owner of a token bucket: the rate of writes.


class Bucket:
    """Refilled at a steady rate up to a burst; thread-safe."""

    def __init__(self, per_second: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second, self._burst, self._clock = per_second, burst, clock
        self._lock = threading.Lock()
        self._tokens = float(burst)
        self._filled_at = clock()

    def reserve(self) -> float:
        """Takes a token, or reserves a future one; returns the seconds to wait."""
        with self._lock:
            self._fill()
            self._tokens -= 1.0
            return max(0.0, -self._tokens / self._per_second)

    def try_take(self) -> bool:
        with self._lock:
            self._fill()
            if self._tokens < 1.0:
                return False
            self._tokens -= 1.0
            return True

    def _fill(self) -> None:
        now = self._clock()
        self._tokens = min(float(self._burst), self._tokens + (now - self._filled_at) * self._per_second)
        self._filled_at = now


_PODS = next(each for each in RESOURCE_KINDS if each.field == "pods")
_PODS_PATH = folder("", "pods")
_PAGE = 500
_SLICE_SECONDS = 0.1  # while waiting, a fallen fence is noticed within this time


class WriteLimits(msgspec.Struct, frozen=True):
    """Concurrency, rate and retry limits of writes."""

    threads: int = 16
    writes_per_second: float = 20.0
    burst: int = 40
    events_per_second: float = 10.0
    burst_of_events: int = 60
    attempts: int = 5
    longest_wait_seconds: float = 10.0
    patience_seconds: float = 20.0  # per write: no retry starts later, since the next plan waits for all writes
    pause: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    wall_clock: Callable[[], float] = time.time  # compared with timestamps of objects


class FenceFell(Exception):
    """This process may no longer write: another leader may be active."""


class NotSeen(Exception):
    """The response to reading an object was neither the object nor 404."""

    def __init__(self, answer: ApiResponse) -> None:
        super().__init__(str(answer.status))
        self.answer = answer


class FencedWriter:
    """Stateless, except for the bucket that all writers share."""

    def __init__(self, server: Writer, bucket: Bucket, fence: Fence, limits: WriteLimits) -> None:
        self._server, self._bucket, self._fence = server, bucket, fence
        self.limits = limits

    @property
    def may_write(self) -> bool:
        return self._fence.holds()

    def look(self, ref: Ref) -> dict[str, Any] | None:
        """The current object. Raises BadPath, Unreachable, NotSeen and FenceFell."""
        self._mind_fence()
        answer = self._server.get(path_of(ref))
        if answer.status == 404:
            return None
        if answer.status != 200:
            raise NotSeen(answer)
        result: dict[str, Any] = msgspec.json.decode(answer.body)
        return result

    def pods_on(self, node: str) -> list[Pod]:
        """The current pods of a node, read page by page and not from a cache. Raises as `look`, and Undecodable."""
        if not is_object_name(node):  # a comma would change the selector
            raise BadPath(f"{shortened(node)} is not a valid name of a Node")
        pods: list[Pod] = []
        query = {"fieldSelector": f"spec.nodeName={node}", "limit": str(_PAGE)}
        while True:
            self._mind_fence()
            answer = self._server.get(_PODS_PATH, query)
            if answer.status != 200:
                raise NotSeen(answer)
            listed = page(_PODS, answer.body)
            pods += [_counting(each) for each in listed.items]
            if not listed.continue_token:
                return pods
            query = {**query, "continue": listed.continue_token}

    def await_token(self) -> None:
        """Waits for a write token. Raises FenceFell."""
        self.wait(self._bucket.reserve())

    def send(self, request: ApiRequest, has_turn: bool = False) -> ApiResponse:
        """Raises Unreachable, if the write may have taken effect, and FenceFell, if nothing was sent."""
        if not has_turn:
            self.await_token()
        self._mind_fence()
        return self._server.send(request)

    def wait(self, seconds: float) -> None:
        """Raises FenceFell."""
        left_seconds = seconds
        while left_seconds > 0:
            self._mind_fence()
            self.limits.pause(min(left_seconds, _SLICE_SECONDS))
            left_seconds -= _SLICE_SECONDS

    def _mind_fence(self) -> None:
        if not self.may_write:
            raise FenceFell


def _counting(result: Pod | StandIn) -> Pod:
    """The stand-in of a pod that is set aside. Raises Undecodable."""
    if not isinstance(result, StandIn):
        return result
    if not isinstance(result.object, Pod):
        raise Undecodable(refused_words(result))
    return result.object
