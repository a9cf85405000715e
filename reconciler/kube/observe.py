"""Observes the cluster: once, for a command, or continuously with an Observer, the owner of threads and store."""

import random
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import msgspec

from reconciler.kube.api_server import ApiServer, Backoff, BackoffBounds, Unreachable
from reconciler.kube.watch.changes import (
    Absent,
    Change,
    ChangeQueue,
    Identity,
    ListEnding,
    ListFailed,
    ListResult,
    ReadFailure,
    wall_clock,
)
from reconciler.kube.watch.discovery import Discovery, identity
from reconciler.kube.watch.reflector import ListRequest, Means, Reflector, ReflectorTiming, list_all
from reconciler.kube.watch.store import ObservedStore
from reconciler.model import names
from reconciler.model.cluster.kinds import RESOURCE_KINDS, ResourceKind
from reconciler.model.cluster.observed import Observed

STOP_SECONDS = 2.0
_THREADS = 8
_ATTEMPTS = 3
_LONGEST_WAIT_SECONDS = 10.0  # for a command, whatever Retry-After the API server sends
_WORTH_ANOTHER_TRY = frozenset({ListEnding.FAILED, ListEnding.EXPIRED})

T = TypeVar("T")


def observe_once(
    server: ApiServer,
    namespace: str = names.OWN_NAMESPACE,
    resource_kinds: Iterable[ResourceKind] = RESOURCE_KINDS,
) -> Observed:
    """Lists all kinds, without watches. A kind that cannot be read is reported as unread.

    Unreachable is raised only if there is no API server, or it rejects the credentials.
    """
    kinds = tuple(resource_kinds)
    store = ObservedStore(kinds, wall_clock, namespace)
    discovery = Discovery(server, namespace)
    store.take([_identity(server)])
    try:
        _patiently(discovery.ask)
    except ListFailed as setback:
        raise Unreachable(f"cannot read the cluster: {setback}", "check the API server") from setback
    with ThreadPoolExecutor(_THREADS) as threads:
        store.take(threads.map(partial(_read, server, discovery), kinds))
    return store.observed()


def _identity(server: ApiServer) -> Identity:
    try:
        return identity(server)
    except ListFailed as setback:
        return Identity(why=setback.outcome.why)


def _read(server: ApiServer, discovery: Discovery, resource_kind: ResourceKind) -> Change:
    def listed() -> Change:
        path = discovery.path(resource_kind, float("inf"))
        return list_all(server, ListRequest(resource_kind, path), wall_clock)

    try:
        return _patiently(listed)
    except ListFailed as setback:
        outcome = setback.outcome
    except Unreachable as fault:
        outcome = ListResult(ListEnding.FAILED, str(fault))
    is_gone = outcome.ending is ListEnding.MISSING and resource_kind.optional  # after discovery of the served kinds
    if is_gone or outcome.ending is ListEnding.NOT_SERVED:
        return Absent(resource_kind, wall_clock())
    return ReadFailure(resource_kind, outcome.why, is_refusal=True)


def _patiently(read: Callable[[], T]) -> T:
    """Retries a few times if a retry may help."""
    backoff = Backoff(BackoffBounds(), random.Random())  # noqa: S311 - of no secret
    for _ in range(_ATTEMPTS - 1):
        wait_seconds = 0.0
        try:
            return read()
        except ListFailed as setback:
            if setback.outcome.ending not in _WORTH_ANOTHER_TRY:
                raise
            wait_seconds = min(_LONGEST_WAIT_SECONDS, setback.outcome.retry_after_seconds)
        except Unreachable:
            pass
        time.sleep(max(wait_seconds, backoff.seconds_after(0)))
    return read()


class ObservedScope(msgspec.Struct, frozen=True):
    namespace: str = names.OWN_NAMESPACE
    kinds: tuple[ResourceKind, ...] = RESOURCE_KINDS


class Observer:
    """Follows a cluster. Some thread calls `on_change` when observe() may return news, once until it is called.

    `on_taken` gets all changes in order, on the thread that takes them into the store; it must not wait.
    """

    def __init__(
        self,
        server: ApiServer,
        scope: ObservedScope | None = None,
        pace: ReflectorTiming | None = None,
        on_change: Callable[[], None] = lambda: None,
        on_taken: Callable[[Sequence[Change]], None] = lambda _: None,
    ) -> None:
        scope, pace = scope or ObservedScope(), pace or ReflectorTiming()
        self._server = server.apart()
        self._stop = threading.Event()
        self._handover = ChangeQueue(on_change)
        self._on_taken = on_taken
        self._store = ObservedStore(scope.kinds, pace.clock, scope.namespace)
        self._lock = threading.Lock()  # changes are taken from the queue and put into the store by one thread at a time
        discovery = Discovery(self._server, scope.namespace)
        means = Means(self._server, discovery, self._handover.tell, pace, self._stop)
        self._threads = [
            threading.Thread(target=Reflector(each, means).run, name=f"watch {each.title}", daemon=True)
            for each in scope.kinds
        ]
        identifying = partial(_identify, means)
        self._threads.append(threading.Thread(target=identifying, name="identify the cluster", daemon=True))

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stops the watches and waits for the threads, except one in a connection attempt, which ends by itself."""
        self._stop.set()
        self._handover.close()
        self._server.close()
        deadline = time.monotonic() + STOP_SECONDS
        for thread in self._threads:
            if thread.is_alive() and thread is not threading.current_thread():
                thread.join(max(0.0, deadline - time.monotonic()))

    def observe(self) -> Observed:
        """The current snapshot; the same object while nothing changes. Never waits for the API server."""
        with self._lock:
            self._take()
            return self._store.observed()

    def take(self) -> None:
        """Takes changes into the store, without the cost of a snapshot."""
        with self._lock:
            self._take()

    def is_synced(self) -> bool:
        """Whether each kind is listed, or known to be absent or forbidden."""
        with self._lock:
            self._take()
            return self._store.is_settled

    def _take(self) -> None:
        changes = self._handover.take()
        if changes:
            self._store.take(changes)
            self._on_taken(changes)


def _identify(means: Means) -> None:
    """Retries until the cluster's identity is known."""
    backoff = Backoff(means.pace.waits, means.pace.chance)
    while not means.stop.is_set():
        try:
            found = identity(means.server)
        except (ListFailed, Unreachable) as fault:
            found = Identity(why=str(fault))
        means.tell(found)
        if found.uid:
            return
        means.stop.wait(backoff.seconds_after(0))
