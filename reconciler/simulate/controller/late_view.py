"""Owner of an imagined cluster as its controller sees it: as it was some time ago, since watches deliver late."""

from collections import deque

from reconciler.model.cluster.observed import QUIET_MS, Observed
from reconciler.model.instant import Instant
from reconciler.protocol.preconditions import Object
from reconciler.simulate.objects import Key, ObjectWrite, key_of
from reconciler.simulate.observer import SimulatedObserver
from reconciler.simulate.world import World

_KEPT = 1_000  # changes, until those that are old enough are put together


class LateView:
    """Of each object only its last change is read, and that when somebody looks."""

    def __init__(self, world: World, cluster_uid: str) -> None:
        self._world = world
        self._simulated_observer = SimulatedObserver(cluster_uid, world.known, world.own_namespace)
        self._late: deque[tuple[Instant, Key, Object | None]] = deque()
        self._due: dict[Key, Object | None] = {}
        self._delay_ms = 0
        for kind in world.kinds():
            self._due.update((key_of(body), body) for body in world.of(kind))

    def note(self, written: ObjectWrite) -> None:
        """A write; told of each."""
        self._late.append((self._world.now, written.key, written.after))
        if len(self._late) > _KEPT:
            self._put_together()

    @property
    def next_from(self) -> Instant | None:
        """Since when the oldest change stands that was not shown yet."""
        return self._late[0][0] if self._late else None

    def observe(self, delay_ms: int) -> Observed:
        """As it was so long ago; never older than what was shown before."""
        self._delay_ms = delay_ms
        self._put_together()
        due, self._due = self._due, {}
        now = Instant(max(0, self._world.now - delay_ms))
        return self._simulated_observer.observed(due.items(), now, is_quiet=delay_ms > QUIET_MS)

    def _put_together(self) -> None:
        late, until = self._late, self._world.now - self._delay_ms
        while late and late[0][0] <= until:
            _, key, body = late.popleft()
            self._due[key] = body
