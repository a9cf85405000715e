"""Where actors meet: an engine, a world, and what has changed. Owner of who is told of which kinds, and of the one
what-if that all of them share.

Whoever asks to be told is told of all that is there already, and from then on of each change, once an instant however
many there were.
"""

import gc
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from heapq import heappop, heappush
from typing import Protocol, TypeVar

from reconciler.fleet.fleet import Fleet
from reconciler.fleet.snapshot.diff import SnapshotDiff
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant
from reconciler.simulate.objects import Key, ObjectWrite, key_of
from reconciler.simulate.world import World

# --- Owner of simulated time: the events to come, in order of their hour and then of when they were asked for; one
# seed.
#
# Chance is drawn from streams by name, so that what one actor draws does not change what happens to another: with the
# same seed two sets of policies meet the same arrivals and faults.

Do = Callable[[], object]


class Engine:
    """Runs one event after the other; nothing takes time but waiting for the next."""

    def __init__(self, seed: int, start: Instant) -> None:
        self.seed = seed
        self.now = start
        self.done = 0  # events so far
        self.listeners: list[Callable[[str], None]] = []  # called after each event with its name
        self.clocks: list[Callable[[Instant], None]] = []  # called when the hour moves on, before what happens then
        self._to_come: list[tuple[Instant, int, str, Do]] = []
        self._requested = 0
        self._streams: dict[str, random.Random] = {}

    @property
    def chance(self) -> random.Random:
        """The stream of whoever has none of its own."""
        return self.stream("")

    def stream(self, name: str) -> random.Random:
        """Chance for one purpose: the same for the same seed and name, whatever else is drawn."""
        result = self._streams.get(name)
        if result is None:
            # A text is hashed by random itself, never by a hash that differs from one process to another.
            result = self._streams[name] = random.Random(f"{self.seed}/{name}")  # noqa: S311 - chance, not a secret
        return result

    def at(self, when: Instant, what: str, do: Do) -> None:
        """What is to happen at that hour; at once, if it has passed."""
        self._requested += 1
        heappush(self._to_come, (max(when, self.now), self._requested, what, do))

    def after(self, delay_ms: int, what: str, do: Do) -> None:
        """What is to happen so much later."""
        self.at(Instant(self.now + delay_ms), what, do)

    def run(self, until: Instant) -> None:
        """All events up to that hour, those at it included; then it is that hour."""
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
    """The world and its time; what an actor is given."""

    def __init__(self, engine: Engine, world: World) -> None:
        self.engine = engine
        self.world = world
        self.dead_nodes: set[str] = set()  # names of nodes whose machine is gone
        self.silent_nodes: set[str] = set()  # names of nodes whose kubelet is gone, those of dead machines included
        self._wakings: dict[str, list[_Waking]] = {}
        self._following = Following(world)
        self._fleet: Fleet | None = None
        world.now = engine.now
        engine.clocks.append(self._move_on)
        world.subscribe(self._note)

    @property
    def now(self) -> Instant:
        return self.engine.now

    def on_change(self, name: str, kinds: Sequence[str], tell: Tell, delay_ms: int = 0) -> None:
        """Calls `tell` with the keys (kind, namespace, name) of what changed, in the order in which it first did."""
        waking = _Waking(self.engine, name, tell, delay_ms)
        for kind in kinds:
            self._wakings.setdefault(kind, []).append(waking)
            for body in self.world.of(kind):
                waking.note(key_of(body))

    def snapshot(self) -> Snapshot:
        """The nodes and what is booked on them, as the world stands now; what it costs grows with what changed."""
        return self._following.snapshot()

    def fleet(self) -> Fleet:
        """The same with indexes, which are made anew for each change: for whoever asks seldom."""
        observed, snapshot = self.world.observe(), self.snapshot()
        if self._fleet is None or self._fleet.observed is not observed or self._fleet.snapshot is not snapshot:
            self._fleet = Fleet(observed, snapshot)
        return self._fleet

    def _note(self, written: ObjectWrite) -> None:
        for each in self._wakings.get(written.key[0], ()):
            each.note(written.key)

    def _move_on(self, now: Instant) -> None:
        self.world.now = now
        self._following.move_on()


class _Waking:
    """Owner of what one of them has not been told yet."""

    def __init__(self, engine: Engine, name: str, tell: Tell, delay_ms: int) -> None:
        self._engine = engine
        self._name = name
        self._tell = tell
        self._delay_ms = delay_ms
        self._keys: dict[Key, None] = {}

    def note(self, key: Key) -> None:
        if not self._keys:
            self._engine.after(self._delay_ms, self._name, self._wake)
        self._keys[key] = None

    def _wake(self) -> None:
        keys = tuple(self._keys)
        self._keys.clear()
        self._tell(keys)


# --- When Python looks for garbage while a play runs: seldom by itself, since nearly all that is written is kept a
# while.
#
# Every thousand writes leave some ten thousand dicts, which Python would walk again and again to find that they are in
# use. What is no longer in use goes by itself; only circles wait. There are few, but a what-if is one, and holds a
# whole cluster: left to itself Python would not look for them in a week. So we say when.

LARGE = 300  # nodes and pods
_NEW_OBJECTS = 50_000  # until those are looked through


@contextmanager
def seldom() -> Iterator[None]:
    """As it was before, afterwards."""
    before = gc.get_threshold()
    gc.set_threshold(_NEW_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def let_go(observed: Observed) -> None:
    """A what-if of so much is given up, and goes now, if it is large. With some hundred nodes that takes a tenth of a
    second, and longer where a process holds much else; small ones may wait for Python's own rounds."""
    if len(observed.nodes) + len(observed.pods) >= LARGE:
        gc.collect()


# --- Owner of the one what-if of a simulated cluster, and of which nodes and pods it has not been told of yet.
#
# Pods come and go with nearly every event, so it is told of them one by one; whatever else predicates look at (volumes,
# claims, namespaces) changes seldom, and is read as a whole.

T = TypeVar("T")

# No predicate looks at these.
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
    """Follows a world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._snapshot: Snapshot | None = None
        self._nodes: dict[Key, Node] = {}  # as the what-if has them
        self._pods: dict[Key, Pod] = {}
        self._changed: dict[Key, None] = {}
        self._rest: Observed | None = None  # all but nodes and pods; None: it changed
        world.subscribe(self._note)

    def snapshot(self) -> Snapshot:
        """As the world stands now."""
        if self._rest is None:
            self._rest = self._world.observe()
        if self._snapshot is None:
            return self._afresh()
        if self._changed or self._snapshot.observed is not self._rest:
            self._snapshot.advance(self._rest, self._taken())
        return self._snapshot

    def move_on(self) -> None:
        """Another hour, in which nobody has asked yet: whoever asks twice within one is not to get another what-if."""
        if self._snapshot is not None and self._snapshot.is_crowded:
            observed, self._snapshot = self._snapshot.observed, None
            let_go(observed)  # or, while somebody still has it, the next time: never more than one

    def _afresh(self) -> Snapshot:
        self._changed.clear()
        self._rest = self._world.observe()
        self._nodes = {("Node", "", each.name): each for each in self._rest.nodes}
        self._pods = {("Pod", each.metadata.namespace, each.name): each for each in self._rest.pods}
        self._snapshot = Snapshot(self._rest)
        return self._snapshot

    def _taken(self) -> SnapshotDiff:
        snapshot_diff = SnapshotDiff([], [], [], [])
        for key in self._changed:
            after = self._world.read_object(key)
            if key[0] == "Node":
                _note_down((self._nodes, snapshot_diff.gone_nodes, snapshot_diff.came_nodes), key, after)
            else:
                _note_down((self._pods, snapshot_diff.gone_pods, snapshot_diff.came_pods), key, after)
        self._changed.clear()
        return snapshot_diff

    def _note(self, written: ObjectWrite) -> None:
        kind = written.key[0]
        if kind in {"Node", "Pod"}:
            self._changed[written.key] = None
        elif kind not in _IGNORED_KINDS and (kind != "Lease" or _is_of_device(written)):
            self._rest = None


def _is_of_device(written: ObjectWrite) -> bool:
    """Leases of GPUs are owned by their nodes; those of leaders, which are renewed all the time, by nobody."""
    body = written.after or written.before or {}
    return bool(body["metadata"].get("ownerReferences"))


def _note_down(books: tuple[dict[Key, T], list[T], list[T]], key: Key, after: T | None) -> None:
    known, gone, came = books
    before = known.pop(key, None)
    if before is not None:
        gone.append(before)
    if after is not None:
        came.append(after)
        known[key] = after


# --- What an actor is: one who writes to the imagined cluster when something changed, or when it is time.


class Actor(Protocol):
    """Deterministic: it goes by the stage and the engine's chance alone, and walks nothing in the order of a hash."""

    def start(self, stage: Stage) -> None:
        """Called once, when the world stands; from then on it acts by events of the engine."""
        ...
