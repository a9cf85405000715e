"""The shared environment of actors: engine, world, change notifications, and the common what-if snapshot.

A subscriber is first notified of all existing objects, then of each change, at most once per instant.
"""

import gc
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from heapq import heappop, heappush
from typing import Protocol

from reconciler.fleet.fleet import Fleet
from reconciler.fleet.snapshot.diff import SnapshotDiff
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant
from reconciler.simulate.objects import Key, ObjectWrite, key_of
from reconciler.simulate.world import World

# --- Owner of simulated time: scheduled events, ordered by time, then by scheduling order; and of random numbers.
#
# Random numbers come from named streams, so that one actor's draws do not affect another's: with the same seed, two
# sets of policies meet the same arrivals and faults.

Do = Callable[[], object]


class Engine:
    """Runs one event after another; time advances only between events."""

    def __init__(self, seed: int, start: Instant) -> None:
        self.seed = seed
        self.now = start
        self.done = 0  # number of executed events
        self.listeners: list[Callable[[str], None]] = []  # called after each event with its name
        self.clocks: list[Callable[[Instant], None]] = []  # called when time advances, before the next event
        self._to_come: list[tuple[Instant, int, str, Do]] = []
        self._requested = 0
        self._streams: dict[str, random.Random] = {}

    def stream(self, name: str) -> random.Random:
        """A random stream for one purpose: depends only on seed and name."""
        result = self._streams.get(name)
        if result is None:
            # random hashes the text itself; hash() differs between processes.
            result = self._streams[name] = random.Random(f"{self.seed}/{name}")  # noqa: S311 - chance, not a secret
        return result

    def at(self, when: Instant, what: str, do: Do) -> None:
        """Schedules an event; a time in the past means now."""
        self._requested += 1
        heappush(self._to_come, (max(when, self.now), self._requested, what, do))

    def after(self, delay_ms: int, what: str, do: Do) -> None:
        self.at(Instant(self.now + delay_ms), what, do)

    def run(self, until: Instant) -> None:
        """Runs all events up to and including that time, and advances to it."""
        to_come = self._to_come
        while to_come and to_come[0][0] <= until:
            when, _, what, do = heappop(to_come)
            self._move_on(when)
            do()
            self.done += 1
            for each in self.listeners:
                each(what)
        self._move_on(until)

    def _move_on(self, when: Instant) -> None:
        if when <= self.now:
            return
        self.now = when
        for each in self.clocks:
            each(when)


Tell = Callable[[Sequence[Key]], object]


class Stage:
    """The world and its time; the environment of an actor."""

    def __init__(self, engine: Engine, world: World) -> None:
        self.engine = engine
        self.world = world
        self.dead_nodes: set[str] = set()  # nodes whose machine is gone
        self.silent_nodes: set[str] = set()  # nodes whose kubelet is gone, including those of dead machines
        self._batches: dict[str, list[Batch]] = {}
        self._following = Following(world)
        self._fleet: Fleet | None = None
        world.now = engine.now
        engine.clocks.append(self._move_on)
        world.subscribe(self._note)

    @property
    def now(self) -> Instant:
        return self.engine.now

    def on_change(self, name: str, kinds: Sequence[str], tell: Tell, delay_ms: int = 0) -> None:
        """Calls `tell` with the keys of changed objects."""
        batch = Batch(self.engine, name, tell, delay_ms)
        for kind in kinds:
            self._batches.setdefault(kind, []).append(batch)
            for body in self.world.of(kind):
                batch.note(key_of(body))

    def snapshot(self) -> Snapshot:
        """The current snapshot for what-if questions; the cost grows with the changes."""
        return self._following.snapshot()

    def fleet(self) -> Fleet:
        """Like `snapshot`, with indexes that are rebuilt after each change: for rare queries."""
        observed, snapshot = self.world.observe(), self.snapshot()
        if self._fleet is None or self._fleet.observed is not observed or self._fleet.snapshot is not snapshot:
            self._fleet = Fleet(observed, snapshot)
        return self._fleet

    def _note(self, written: ObjectWrite) -> None:
        for each in self._batches.get(written.key[0], ()):
            each.note(written.key)

    def _move_on(self, now: Instant) -> None:
        self.world.now = now
        self._following.move_on()


class Batch:
    """Keys (kind, namespace, name) that are told together, in order of their first change."""

    def __init__(self, engine: Engine, name: str, tell: Tell, delay_ms: int = 0) -> None:
        self._engine = engine
        self._name = name
        self._tell = tell
        self._delay_ms = delay_ms
        self._keys: dict[Key, None] = {}

    def note(self, key: Key, late_ms: int = 0) -> None:
        """The first key schedules the call, after the delay and `late_ms`."""
        if not self._keys:
            self._engine.after(self._delay_ms + late_ms, self._name, self._wake)
        self._keys[key] = None

    def _wake(self) -> None:
        keys = tuple(self._keys)
        self._keys.clear()
        self._tell(keys)


# --- Garbage collection during a play: rarely automatic, since most written objects are kept for a while.
#
# A thousand writes leave some ten thousand dicts, which Python's collector would scan again and again although they are
# in use. Most unused objects are freed by reference counting; only cycles remain. These are few, but a snapshot is one,
# and holds a whole cluster, so it is collected explicitly.

LARGE = 300  # nodes and pods
_NEW_OBJECTS = 50_000  # threshold of the collector's youngest generation


@contextmanager
def seldom() -> Iterator[None]:
    """Restores the previous settings afterwards."""
    before = gc.get_threshold()
    gc.set_threshold(_NEW_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def let_go(observed: Observed) -> None:
    """Collects a discarded snapshot now if it is large.

    With some hundred nodes, this takes a tenth of a second, and longer in a large process; small ones wait for
    Python's own collections.
    """
    if len(observed.nodes) + len(observed.pods) >= LARGE:
        gc.collect()


# --- Owner of the common snapshot of a simulated cluster, and of its pending node and pod changes.
#
# Pods change with nearly every event, so they are applied one by one; everything else that predicates depend on
# (volumes, claims, namespaces) changes rarely, and is read as a whole.

# No predicate depends on these.
_IGNORED_KINDS = frozenset(
    {
        "ConfigMap",
        "DaemonSet",
        "Deployment",
        "Job",
        "NodeClaim",
        "NodePool",
        "PodDisruptionBudget",
        "ReplicaSet",
        "StatefulSet",
    }
)


class Following:
    def __init__(self, world: World) -> None:
        self._world = world
        self._snapshot: Snapshot | None = None
        self._known: dict[Key, Node | Pod] = {}  # as applied to the snapshot
        self._changed: dict[Key, None] = {}
        self._rest: Observed | None = None  # all except nodes and pods; None: changed
        world.subscribe(self._note)

    def snapshot(self) -> Snapshot:
        if self._rest is None:
            self._rest = self._world.observe()
        if self._snapshot is None:
            return self._afresh()
        if self._changed or self._snapshot.observed is not self._rest:
            self._snapshot.advance(self._rest, self._taken())
        return self._snapshot

    def move_on(self) -> None:
        """Marks that time has advanced: two queries at the same instant return the same snapshot."""
        if self._snapshot is not None and self._snapshot.is_crowded:
            observed, self._snapshot = self._snapshot.observed, None
            let_go(observed)  # if still referenced, next time: at most one is pending

    def _afresh(self) -> Snapshot:
        self._changed.clear()
        self._rest = self._world.observe()
        self._known = {("Node", "", each.name): each for each in self._rest.nodes}
        self._known |= {("Pod", each.metadata.namespace, each.name): each for each in self._rest.pods}
        self._snapshot = Snapshot(self._rest)
        return self._snapshot

    def _taken(self) -> SnapshotDiff:
        diff = SnapshotDiff([], [], [], [])
        for key in self._changed:
            before, after = self._known.pop(key, None), self._world.read_object(key)
            if after is not None:
                self._known[key] = after
            for each, nodes, pods in (
                (before, diff.gone_nodes, diff.gone_pods),
                (after, diff.came_nodes, diff.came_pods),
            ):
                if isinstance(each, Node):
                    nodes.append(each)
                elif each is not None:
                    pods.append(each)
        self._changed.clear()
        return diff

    def _note(self, written: ObjectWrite) -> None:
        kind = written.key[0]
        if kind in {"Node", "Pod"}:
            self._changed[written.key] = None
        elif kind not in _IGNORED_KINDS and (kind != "Lease" or _is_of_device(written)):
            self._rest = None


def _is_of_device(written: ObjectWrite) -> bool:
    """Whether a Lease is of a GPU: owned by a node. Leader Leases, which are renewed all the time, have no owner."""
    body = written.after or written.before or {}
    return bool(body["metadata"].get("ownerReferences"))


# --- Actors: write to the simulated cluster after changes or at scheduled times.


class Actor(Protocol):
    """Deterministic: depends only on the stage and its random streams, and iterates nothing in hash order."""

    def start(self, stage: Stage) -> None:
        """Called once, when the world is complete; from then on the actor acts by engine events."""
        ...
