"""Results of lists and changes of watches, on their way from the reflectors to the store."""

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
    """Now."""
    return Instant(time.time_ns() // 1_000_000)


class Listed(msgspec.Struct, frozen=True):
    """All objects of a kind."""

    resource_kind: ResourceKind
    items: tuple[Any, ...]
    version: str
    at: Instant  # before it was asked for: what is in it is at least as new


class ObjectEvent(msgspec.Struct, frozen=True):
    """An event of a watch that is no error."""

    resource_kind: ResourceKind
    event: WatchEvent
    at: Instant


class WatchOpened(msgspec.Struct, frozen=True):
    """The API server lets the kind be watched."""

    resource_kind: ResourceKind


class Absent(msgspec.Struct, frozen=True):
    """The cluster does not serve the kind."""

    resource_kind: ResourceKind
    at: Instant
    again: bool = False  # it was so before


class ReadFailure(msgspec.Struct, frozen=True):
    """The kind can't be read now. What was seen of it holds for a while, unless the API server refuses to tell more."""

    resource_kind: ResourceKind
    why: str
    is_refusal: bool = False


class Identity(msgspec.Struct, frozen=True):
    """Which cluster it is, or why that can't be read."""

    uid: str = ""
    why: str = ""


Change = Listed | ObjectEvent | WatchOpened | Absent | ReadFailure | Identity


def is_news(change: Change) -> bool:
    """Whether it may change what is known, not only how lately it was confirmed."""
    match change:
        case ObjectEvent(event=event):
            return event.type != "BOOKMARK"
        case Absent(again=again):
            return not again
        case ReadFailure(is_refusal=is_refusal):
            return is_refusal
    return True


# --- Owner of the changes on their way from the watchers' threads to whoever owns the store.
#
# What comes between two takings is one batch. Its owner is told once that there is something to take, not once an
# event; and while nobody takes, watchers wait here, which stops their reading: the API server then keeps what it has to
# say.

MOST_CHANGES = 5_000


class ChangeQueue:
    """`on_news` is called on a watcher's thread, and should do no more than wake somebody."""

    def __init__(self, on_news: Callable[[], None], most_changes: int = MOST_CHANGES) -> None:
        self._on_news = on_news
        self._most_changes = most_changes
        self._changes: list[Change] = []
        self._is_told = False
        self._is_closed = False
        self._moved = threading.Condition()

    def tell(self, change: Change) -> None:
        """Waits while there is no room. What is told after closing is lost."""
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
        """All that has come, in the order in which it came. Never blocks."""
        with self._moved:
            taken, self._changes = self._changes, []
            self._is_told = False
            self._moved.notify_all()
        return taken

    def wait(self, timeout_seconds: float) -> None:
        """Returns when there is something to take, at the latest after that long."""
        with self._moved:
            self._moved.wait_for(lambda: self._is_closed or bool(self._changes), timeout_seconds)

    def close(self) -> None:
        """Nobody takes any more: nobody need wait."""
        with self._moved:
            self._is_closed = True
            self._moved.notify_all()


# --- resourceVersions of one cluster, compared: they count its writes, whatever the kind.


def is_newer(version: str, than: str) -> bool:
    """Whether it came later. What can't be compared is taken for news."""
    came, before = natural(version), natural(than)
    return came is None or before is None or came > before


def is_older(version: str, than: str) -> bool:
    """Whether it was true before."""
    came, before = natural(version), natural(than)
    return came is not None and before is not None and came < before


# --- What comes of asking for a kind: a closed set, so that what follows from each can be a table.


class ListEnding(Enum):
    """How it went."""

    SERVED = auto()  # there is such a kind, at a path
    NOT_SERVED = auto()  # there is none, which is an answer
    UNSUITED = auto()  # there is none, or not as we read it, which is no answer
    LISTED = auto()
    ENDED = auto()  # a watch came to its end, as each does
    BROKEN = auto()  # a watch said what is no event, or told of an error
    EXPIRED = auto()  # what was asked for is too old: 410
    MISSING = auto()  # nothing at this path any more: 404
    FORBIDDEN = auto()
    OLDER = auto()  # a list that is older than what was seen
    FAILED = auto()  # no answer, or one that helps nobody


class ListResult(msgspec.Struct, frozen=True):
    """How it went, and why."""

    ending: ListEnding
    why: str = ""
    retry_after_seconds: float = 0.0  # asked for by the API server


class ListFailed(Exception):
    """Something else came of it than was hoped for."""

    def __init__(self, outcome: ListResult) -> None:
        super().__init__(outcome.why)
        self.outcome = outcome


class _Status(msgspec.Struct):
    message: str = ""


_BY_STATUS = {403: ListEnding.FORBIDDEN, 404: ListEnding.MISSING, 410: ListEnding.EXPIRED}


def setback_of(answer: ApiResponse, resource_kind: ResourceKind, verb: str) -> ListFailed:
    """What an answer other than 200 means for a kind that was to be listed or watched."""
    ending = _BY_STATUS.get(answer.status, ListEnding.FAILED)
    if ending is ListEnding.FORBIDDEN:
        # The kind is told beside it; without it here, the kinds that the role lacks are told in one sentence.
        where = " in our namespace" if resource_kind.namespace_for("ours") else ""
        why = f"may not {verb} them{where}: the role needs list and watch, and `reconciler rbac` prints one with both"
    else:
        why = f"to {verb} {resource_kind.resource} was answered with {said(answer)}"
    return ListFailed(ListResult(ending, why, answer.retry_after_seconds))


def said(answer: ApiResponse) -> str:
    """The status, and the sentence that came with it."""
    try:
        message = msgspec.json.decode(answer.body, type=_Status).message
    except (msgspec.MsgspecError, UnicodeDecodeError):
        message = ""
    return f"{answer.status}: {message}" if message else str(answer.status)
