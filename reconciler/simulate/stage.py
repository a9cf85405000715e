"""Where actors meet: an engine, a world, and what has changed. Owner of who is told of which kinds, and of the one
what-if that all of them share.

Whoever asks to be told is told of all that is there already, and from then on of each change, once an instant however
many there were.
"""

from collections.abc import Callable, Sequence

from reconciler.fleet.fleet import Fleet
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.instant import Instant
from reconciler.simulate.engine import Engine
from reconciler.simulate.fleet_tracker import Following
from reconciler.simulate.objects import Key, ObjectWrite, key_of
from reconciler.simulate.world import World

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
