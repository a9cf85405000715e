"""Results of lists and watches, passed from the reflectors to the store."""

import threading
import time
from collections.abc import Callable
from enum import Enum, auto
from typing import Any

import msgspec

from reconciler.kube.api_server import ApiResponse
from reconciler.kube.decode import WatchEvent
from reconciler.model.cluster.kinds import ResourceKind
from reconciler.model.instant import Instant
from reconciler.model.parsers import natural

Clock = Callable[[], Instant]


def wall_clock() -> Instant:
    return Instant(time.time_ns() // 1_000_000)


class Listed(msgspec.Struct, frozen=True):
    resource_kind: ResourceKind
    items: tuple[Any, ...]
    version: str
    at: Instant  # time before the request: the list is at least as new


class ObjectEvent(msgspec.Struct, frozen=True):
    """An event of a watch, except errors."""

    resource_kind: ResourceKind
    event: WatchEvent
    at: Instant


class WatchOpened(msgspec.Struct, frozen=True):
    """The API server accepted the watch."""

    resource_kind: ResourceKind


class Absent(msgspec.Struct, frozen=True):
    """The cluster does not serve the kind."""

    resource_kind: ResourceKind
    at: Instant
    again: bool = False  # was absent before


class ReadFailure(msgspec.Struct, frozen=True):
    """The kind cannot be read now. Its objects stay valid for a while, unless the API server denies access."""

    resource_kind: ResourceKind
    why: str
    is_refusal: bool = False


class Identity(msgspec.Struct, frozen=True):
    """The cluster's identity, or why it cannot be read."""

    uid: str = ""
    why: str = ""


Change = Listed | ObjectEvent | WatchOpened | Absent | ReadFailure | Identity


def is_news(change: Change) -> bool:
    """Whether the change may alter the snapshot, not only its confirmation time."""
    match change:
        case ObjectEvent(event=event):
            return event.type != "BOOKMARK"
        case Absent(again=again):
            return not again
        case ReadFailure(is_refusal=is_refusal):
            return is_refusal
    return True


# --- Owner of the changes on their way from the reflectors' threads to the owner of the store.
#
# All changes between two takes are one batch. The owner is notified once per batch, not per event. While the queue is
# full, reflectors wait here and stop reading, so the API server buffers further events.

MOST_CHANGES = 5_000


class ChangeQueue:
    """`on_news` is called on a reflector's thread, and should only wake another thread."""

    def __init__(self, on_news: Callable[[], None], most_changes: int = MOST_CHANGES) -> None:
        self._on_news = on_news
        self._most_changes = most_changes
        self._changes: list[Change] = []
        self._is_told = False
        self._is_closed = False
        self._moved = threading.Condition()

    def tell(self, change: Change) -> None:
        """Adds a change; waits while the queue is full. Changes after close are dropped."""
        with self._moved:
            self._moved.wait_for(lambda: self._is_closed or len(self._changes) < self._most_changes)
            if self._is_closed:
                return
            self._changes.append(change)
            self._moved.notify_all()
            tells_now = is_news(change) and not self._is_told
            self._is_told |= tells_now
        if tells_now:
            self._on_news()

    def take(self) -> list[Change]:
        """All queued changes in order. Never blocks."""
        with self._moved:
            taken, self._changes = self._changes, []
            self._is_told = False
            self._moved.notify_all()
        return taken

    def close(self) -> None:
        """No more takes: producers need not wait."""
        with self._moved:
            self._is_closed = True
            self._moved.notify_all()


# --- Comparison of resourceVersions of one cluster: they count its writes, across kinds.


def is_newer(version: str, than: str) -> bool:
    """Whether `version` is newer. Versions that cannot be compared count as newer."""
    came, before = natural(version), natural(than)
    return came is None or before is None or came > before


def is_older(version: str, than: str) -> bool:
    came, before = natural(version), natural(than)
    return came is not None and before is not None and came < before


# --- Results of reading a kind: a closed set, so that the next steps can be a table.


class ListEnding(Enum):
    """The result of a step."""

    SERVED = auto()  # the kind exists, at a path
    NOT_SERVED = auto()  # the kind does not exist, which is a valid answer
    UNSUITED = auto()  # the kind is missing or has no supported version, which is an error
    LISTED = auto()
    ENDED = auto()  # a watch ended normally
    BROKEN = auto()  # a watch sent an invalid event or an error
    EXPIRED = auto()  # the requested version is too old: 410
    MISSING = auto()  # the path no longer exists: 404
    FORBIDDEN = auto()
    OLDER = auto()  # a list older than the observed state
    FAILED = auto()  # no response, or an unusable one


class ListResult(msgspec.Struct, frozen=True):
    ending: ListEnding
    why: str = ""
    retry_after_seconds: float = 0.0  # requested by the API server


class ListFailed(Exception):
    """The step did not succeed."""

    def __init__(self, outcome: ListResult) -> None:
        super().__init__(outcome.why)
        self.outcome = outcome


class _Status(msgspec.Struct):
    message: str = ""


_BY_STATUS = {403: ListEnding.FORBIDDEN, 404: ListEnding.MISSING, 410: ListEnding.EXPIRED}


def setback_of(answer: ApiResponse, resource_kind: ResourceKind, verb: str) -> ListFailed:
    """The meaning of a response other than 200 to a list or watch."""
    ending = _BY_STATUS.get(answer.status, ListEnding.FAILED)
    if ending is ListEnding.FORBIDDEN:
        # The kind is shown separately; without it here, all kinds that the role lacks share one message.
        where = " in the namespace of reconciler" if resource_kind.namespace_for("ours") else ""
        why = f"may not {verb} them{where}: the role needs list and watch, and `reconciler rbac` prints one with both"
    else:
        why = f"the {verb} of {resource_kind.resource} failed: {said(answer)}"
    return ListFailed(ListResult(ending, why, answer.retry_after_seconds))


def said(answer: ApiResponse) -> str:
    """The status code and message of a response."""
    try:
        message = msgspec.json.decode(answer.body, type=_Status).message
    except (msgspec.MsgspecError, UnicodeDecodeError):
        message = ""
    return f"{answer.status}: {message}" if message else str(answer.status)
