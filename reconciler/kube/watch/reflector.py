"""Follows one kind on its own thread. A Reflector owns its position in the watch.

The thread is needed because a watch blocks: lines are read, decoded and passed on as they arrive, and the owner of the
store never waits for a socket.
"""

import random
import threading
import time
from collections.abc import Callable
from enum import Enum, auto
from typing import Any

import msgspec

from reconciler.kube.api_server import ApiServer, Backoff, BackoffBounds, Unreachable
from reconciler.kube.decode import ListPage, Undecodable, WatchEvent, event, page
from reconciler.kube.watch.changes import (
    Absent,
    Change,
    Clock,
    Listed,
    ListEnding,
    ListFailed,
    ListResult,
    ObjectEvent,
    ReadFailure,
    WatchOpened,
    is_newer,
    is_older,
    setback_of,
    wall_clock,
)
from reconciler.kube.watch.discovery import Discovery
from reconciler.model.cluster.kinds import ResourceKind

# --- The next step of a reflector: a table, by phase and result of the last step.
#
# A kind is discovered, listed, and watched from the version of its list. A watch that ends for any reason is resumed at
# its position; only an expired version, or a kind without confirmation for long, is listed again.


class ReflectorPhase(Enum):
    LOOK = auto()
    LIST = auto()
    WATCH = auto()


class Wait(Enum):
    """The delay before the next step."""

    NONE = auto()
    BACKOFF = auto()
    INTERVAL = auto()  # until an absent kind may have been installed


class Tell(Enum):
    """What the store is told about the last step; lists and events are passed on separately."""

    NOTHING = auto()
    ABSENT = auto()
    TROUBLE = auto()  # observed objects stay valid until they are stale
    REFUSAL = auto()  # observed objects are invalid from now on


class Next(msgspec.Struct, frozen=True):
    """The next step; without a phase, the step is repeated."""

    phase: ReflectorPhase | None
    wait: Wait
    tell: Tell


NEXT = {
    ListEnding.SERVED: Next(ReflectorPhase.LIST, Wait.NONE, Tell.NOTHING),
    ListEnding.NOT_SERVED: Next(ReflectorPhase.LOOK, Wait.INTERVAL, Tell.ABSENT),
    ListEnding.UNSUITED: Next(ReflectorPhase.LOOK, Wait.INTERVAL, Tell.REFUSAL),
    ListEnding.LISTED: Next(ReflectorPhase.WATCH, Wait.NONE, Tell.NOTHING),
    ListEnding.ENDED: Next(ReflectorPhase.WATCH, Wait.BACKOFF, Tell.NOTHING),
    ListEnding.BROKEN: Next(ReflectorPhase.WATCH, Wait.BACKOFF, Tell.TROUBLE),
    ListEnding.EXPIRED: Next(ReflectorPhase.LIST, Wait.BACKOFF, Tell.TROUBLE),
    ListEnding.MISSING: Next(ReflectorPhase.LOOK, Wait.BACKOFF, Tell.TROUBLE),
    ListEnding.FORBIDDEN: Next(None, Wait.BACKOFF, Tell.REFUSAL),
    ListEnding.OLDER: Next(ReflectorPhase.LIST, Wait.BACKOFF, Tell.REFUSAL),
    ListEnding.FAILED: Next(None, Wait.BACKOFF, Tell.TROUBLE),
}


def next_step(phase: ReflectorPhase, ending: ListEnding, is_overdue: bool) -> Next:
    """`is_overdue`: the kind has had no confirmation for so long that it should be listed again."""
    following = NEXT[ending]
    after = following.phase or phase
    # A server need not send bookmarks, and a kind without changes has no events: lists confirm such kinds.
    if after is ReflectorPhase.WATCH and is_overdue and ending is not ListEnding.LISTED:
        after = ReflectorPhase.LIST
    return msgspec.structs.replace(following, phase=after)


_UNTROUBLED = frozenset({ListEnding.LISTED, ListEnding.ENDED})


class ReflectorTiming(msgspec.Struct, frozen=True):
    """Timing. API servers send a bookmark per minute; a kind without confirmation for 5 minutes counts as unread."""

    watch_seconds: float = 240.0  # up to 50 % longer, so that not all watches end at once
    silence_seconds: float = 90.0  # without a line, the connection counts as dead
    overdue_seconds: float = 150.0  # without a confirmation, the next step is a list
    absent_seconds: float = 30.0  # interval of discovery for a kind that is not served
    waits: BackoffBounds = BackoffBounds()
    chance: random.Random = msgspec.field(default_factory=random.Random)
    clock: Clock = wall_clock


class Means(msgspec.Struct, frozen=True):
    """Shared by all reflectors."""

    server: ApiServer
    discovery: Discovery
    tell: Callable[[Change], None]
    pace: ReflectorTiming
    stop: threading.Event


class Reflector:
    """Follows a kind until stopped."""

    def __init__(self, resource_kind: ResourceKind, means: Means) -> None:
        self._resource_kind = resource_kind
        self._means = means
        self._backoff = Backoff(means.pace.waits, means.pace.chance)
        self._phase = ReflectorPhase.LOOK
        self._path = ""
        self._version = ""  # newest observed version
        self._confirmed = time.monotonic()
        self._last = ListEnding.SERVED

    def run(self) -> None:
        stop = self._means.stop
        while not stop.is_set():
            began = time.monotonic()
            duration, outcome = self._phase is ReflectorPhase.WATCH, self._step()
            if stop.is_set():
                return
            ended = time.monotonic()
            overdue = ended - self._confirmed > self._means.pace.overdue_seconds
            following = next_step(self._phase, outcome.ending, overdue)
            self._say(following.tell, outcome)
            self._phase, self._last = following.phase or self._phase, outcome.ending
            wait_seconds = self._wait_seconds(following, ended - began if duration else 0)
            # A server or proxy may request a longer delay than is acceptable.
            stop.wait(max(wait_seconds, min(outcome.retry_after_seconds, self._means.pace.waits.most_seconds)))

    def _step(self) -> ListResult:
        try:
            match self._phase:
                case ReflectorPhase.LOOK:
                    return self._look()
                case ReflectorPhase.LIST:
                    return self._list()
                case ReflectorPhase.WATCH:
                    return self._watch()
        except ListFailed as setback:
            return setback.outcome
        except Unreachable as fault:
            return ListResult(ListEnding.FAILED, str(fault))
        except Exception as error:  # noqa: BLE001 - a thread that ends would freeze the kind without a word
            return ListResult(ListEnding.FAILED, f"reading failed: {type(error).__name__}: {error}")

    def _look(self) -> ListResult:
        # A kind that was just missing needs a newer discovery result; otherwise a shared one suffices.
        age_seconds = 0.0 if self._last is ListEnding.MISSING else self._means.pace.absent_seconds / 2
        self._path = self._means.discovery.path(self._resource_kind, age_seconds)
        return ListResult(ListEnding.SERVED)

    def _list(self) -> ListResult:
        began = time.monotonic()
        request = ListRequest(self._resource_kind, self._path, self._version)
        listed = list_all(self._means.server, request, self._means.pace.clock)
        self._means.tell(listed)
        self._version, self._confirmed = listed.version, began
        return ListResult(ListEnding.LISTED)

    def _watch(self) -> ListResult:
        pace = self._means.pace
        seconds = max(1, round(pace.watch_seconds * (1 + pace.chance.random() / 2)))
        query = ListRequest(self._resource_kind, self._path).query(
            watch="true", allowWatchBookmarks="true", timeoutSeconds=str(seconds), resourceVersion=self._version
        )
        with self._means.server.stream(self._path, query, pace.silence_seconds) as stream:
            if stream.answer.status != 200:
                raise setback_of(stream.answer, self._resource_kind, "watch")
            if self._last not in _UNTROUBLED:
                self._means.tell(WatchOpened(self._resource_kind))
            for line in stream.lines:
                self._heed(self._event(line))
        return ListResult(ListEnding.ENDED)

    def _event(self, line: bytes) -> WatchEvent:
        try:
            watch_event = event(self._resource_kind, line)
        except Undecodable as fault:
            raise ListFailed(ListResult(ListEnding.BROKEN, str(fault))) from fault
        if watch_event.type == "ERROR":
            ending = ListEnding.EXPIRED if watch_event.code == 410 else ListEnding.BROKEN
            raise ListFailed(ListResult(ending, f"the watch reported error {watch_event.code}: {watch_event.message}"))
        return watch_event

    def _heed(self, watch_event: WatchEvent) -> None:
        self._means.tell(ObjectEvent(self._resource_kind, watch_event, self._means.pace.clock()))
        if watch_event.resource_version and is_newer(watch_event.resource_version, self._version):
            self._version = watch_event.resource_version
        self._confirmed = time.monotonic()

    def _say(self, tell: Tell, outcome: ListResult) -> None:
        match tell:
            case Tell.ABSENT:
                again = self._last is ListEnding.NOT_SERVED
                self._means.tell(Absent(self._resource_kind, self._means.pace.clock(), again))
            case Tell.TROUBLE | Tell.REFUSAL:
                self._means.tell(ReadFailure(self._resource_kind, outcome.why, is_refusal=tell is Tell.REFUSAL))

    def _wait_seconds(self, following: Next, lasted_seconds: float) -> float:
        pace = self._means.pace
        match following.wait:
            case Wait.NONE:
                return 0.0
            case Wait.BACKOFF:
                return self._backoff.seconds_after(lasted_seconds)
            case Wait.INTERVAL:
                return pace.absent_seconds * (0.9 + pace.chance.random() / 10)


# --- Lists one kind: page by page, from one snapshot, and never older than the observed state.

PAGE = 500
_ATTEMPTS = 3  # at lists whose pages expire while being read
_GONE = "pages of the list expire faster than they can be read"


class ListRequest(msgspec.Struct, frozen=True):
    resource_kind: ResourceKind
    path: str
    known_version: str = ""

    def query(self, **more: str) -> dict[str, str]:
        """Query parameters that restrict a list or watch to this kind."""
        return {**({"labelSelector": self.resource_kind.selector} if self.resource_kind.selector else {}), **more}


def list_all(server: ApiServer, request: ListRequest, clock: Clock) -> Listed:
    """All objects of one snapshot. Raises ListFailed and Unreachable."""
    for _ in range(_ATTEMPTS):
        at = clock()
        first = _page(server, request, "")
        if is_older(first.resource_version, request.known_version):
            why = (
                f"the API server lists version {first.resource_version}, older than the observed version "
                f"{request.known_version}: if etcd was restored from a backup, restart reconciler"
            )
            raise ListFailed(ListResult(ListEnding.OLDER, why))
        items = _with_the_rest(server, request, first)
        if items is not None:
            return Listed(request.resource_kind, items, first.resource_version, at)
    raise ListFailed(ListResult(ListEnding.EXPIRED, _GONE))


def _with_the_rest(server: ApiServer, request: ListRequest, first: ListPage) -> tuple[Any, ...] | None:
    """The items of all pages; None if a later page expired or is of another snapshot."""
    pages = [first.items]
    last = first
    while last.continue_token:
        try:
            last = _page(server, request, last.continue_token)
        except ListFailed as setback:
            if setback.outcome.ending is ListEnding.EXPIRED:
                return None
            raise
        if last.resource_version != first.resource_version:
            return None
        pages.append(last.items)
    return tuple(item for each in pages for item in each)


def _page(server: ApiServer, request: ListRequest, token: str) -> ListPage:
    query = request.query(limit=str(PAGE), **({"continue": token} if token else {}))
    answer = server.get(request.path, query)
    if answer.status != 200:
        raise setback_of(answer, request.resource_kind, "list")
    try:
        return page(request.resource_kind, answer.body)
    except Undecodable as fault:
        raise ListFailed(ListResult(ListEnding.FAILED, str(fault))) from fault
