"""The real loop on an imagined cluster."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence

import msgspec

from reconciler.loop import Cycle, InProcess, LoopDependencies
from reconciler.model.cluster.observed import QUIET_MS, Observed
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Decision, Outcome, Ref
from reconciler.model.plan.inputs import CycleResult
from reconciler.model.plan.memory import Memory
from reconciler.ports import Fence, PlanService, Policies, Publisher, Stale, VersionedMemory
from reconciler.protocol.preconditions import Object
from reconciler.simulate.objects import Key, ObjectWrite, key_of
from reconciler.simulate.observer import SimulatedObserver
from reconciler.simulate.stage import Stage, let_go
from reconciler.simulate.world import World

__all__ = ["ControllerSettings", "SimulatedController"]


# --- The real loop's step, by events of the engine; a Controller is the owner of the process that it would be.
#
# It is woken by what changed, once it could see that, or when its last plan says; and has at most one cycle in each
# `cycle_every_ms`. An API server that answers late is one whose cluster was seen so much longer ago when writes land.

_SETTLES_MS = 100  # what changes together is looked at together
_WRITERS = 16
_SOON_MS = 10_000


class ControllerSettings(msgspec.Struct, frozen=True):
    """How it runs."""

    cycle_every_ms: int = 1_000
    watch_delay_ms: int = 200
    answer_delay_ms: int = 20
    restart_ms: int = 2_000  # until a new process looks for the first time
    brain: Callable[[], PlanService] = InProcess
    memory: Memory = Memory()


class SimulatedController:
    """A Cluster, a Clock and a Fence to its own cycles."""

    def __init__(
        self, policies: Policies, publishers: tuple[Publisher, ...] = (), setting: ControllerSettings | None = None
    ) -> None:
        self._setting = setting or ControllerSettings()
        self.watch_delay_ms = self._setting.watch_delay_ms
        self.answer_delay_ms = self._setting.answer_delay_ms
        self._policies = policies
        self._publishers = publishers
        self._memory = Remembered(self._setting.memory)
        self._cycle: Cycle | None = None  # None: there is no process
        self._view: LateView | None = None
        self._due: Instant | None = None  # when the next cycle is to begin
        self._free_at = Instant(0)
        self._dies_after: int | None = None  # writes
        self._presence = Presence()
        self._is_away = False  # until somebody starts it, not by itself

    def start(self, stage: Stage) -> None:
        self._stage = stage
        self._cluster_uid = stage.world.observe().cluster_uid
        stage.world.subscribe(self._noted)
        stage.world.on_write = self._wrote
        self.resume()

    def wake(self) -> None:
        """Policies changed."""
        self._look_at(Instant(self._stage.now + _SETTLES_MS))

    def crash(self, after_writes: int = 0) -> None:
        """The process is killed, now or after so many more writes, and started again; what is stored stays."""
        if after_writes:
            self._dies_after = after_writes
        elif self._cycle is not None:
            self._end()
            self._stage.engine.after(self._setting.restart_ms, "the controller starts again", self._start_again)

    def stop(self) -> None:
        """There is no controller, until it resumes; whatever else would start it."""
        self._is_away = True
        self._end()

    def resume(self) -> None:
        """A new process, which knows what is stored and what it sees."""
        self._is_away = False
        self._begin()

    def _start_again(self) -> None:
        if not self._is_away:
            self._begin()

    def _end(self) -> None:
        self._cycle, self._view, self._due, self._dies_after = None, None, None, None
        self._note_presence()
        let_go(self._stage.world.observe())  # a process takes with it what it held

    def _begin(self) -> None:
        if self._cycle is not None:
            return
        self._view = LateView(self._stage.world, self._cluster_uid)
        setting = self._setting
        parts = LoopDependencies(self._policies, self, self._memory, setting.brain(), self, self._publishers)
        self._cycle = Cycle(parts)
        self._note_presence()
        self._look_at(self._stage.now)

    def delay(self, watch_ms: int, answer_ms: int) -> None:
        """So late watches deliver from now on, and so late the API server answers."""
        self.watch_delay_ms, self.answer_delay_ms = watch_ms, answer_ms
        self._note_presence()

    def presence_ms(self) -> int:
        """How long it has been there so far, and seen soon what happened."""
        return self._presence.so_far_ms(self._stage.now)

    def remembered(self) -> Memory:
        """As it is stored."""
        return self._memory.load().memory

    def _note_presence(self) -> None:
        sees_soon = self.watch_delay_ms + self.answer_delay_ms <= _SOON_MS
        self._presence.note(self._cycle is not None and sees_soon, self._stage.now)

    # The ports

    def observe(self) -> Observed:
        if self._view is None:
            raise TypeError("a process that is not there observes nothing")
        return self._view.observe(self.watch_delay_ms + self.answer_delay_ms)

    def apply(self, decisions: Sequence[Decision], fence: Fence) -> Iterator[Outcome]:
        return self._stage.world.apply(decisions, fence)

    def holds(self) -> bool:
        """Whoever there is leads."""
        return self._cycle is not None

    def now(self) -> Instant:
        return self._stage.now

    def wait(self, until: Instant | None) -> None:
        raise TypeError("a step never waits")

    # When to look

    def _noted(self, written: ObjectWrite) -> None:
        if self._view is None:
            return
        self._view.note(written)
        self._look_at(self._delivered(self._stage.now))

    def _delivered(self, at: Instant) -> Instant:
        """When to look at what changes then."""
        return Instant(at + self.watch_delay_ms + self.answer_delay_ms + _SETTLES_MS)

    def _look_at(self, when: Instant) -> None:
        """A cycle then, or as soon after it as there may be one; an earlier one that is due stays."""
        when = max(when, self._free_at, self._stage.now)
        if self._cycle is None or (self._due is not None and self._due <= when):
            return
        self._due = when
        self._stage.engine.at(when, "a cycle", lambda: self._once(when))

    def _once(self, when: Instant) -> None:
        if self._cycle is None or self._due != when:
            return
        self._due = None
        self._free_at = Instant(when + self._setting.cycle_every_ms)
        cycled = self._cycled(self._cycle)
        if cycled is None:
            self.crash()
            return
        turns = -(-len(cycled.outcomes) // _WRITERS)
        self._free_at = max(self._free_at, Instant(when + turns * self.answer_delay_ms))
        if cycled.wake_at is not None:
            self._look_at(cycled.wake_at)
        if self._view is not None and (on_its_way := self._view.next_from) is not None:
            self._look_at(self._delivered(on_its_way))

    def _cycled(self, cycle: Cycle) -> CycleResult | None:
        """Nothing, if it was killed; and then nothing holds any more what it held."""
        try:
            return cycle.once(self)
        except _Killed:
            return None

    def _wrote(self, ref: Ref) -> None:
        if self._dies_after is not None:
            self._dies_after -= 1
            if self._dies_after <= 0:
                raise _Killed(ref.title)


class _Killed(BaseException):
    """The process is gone."""


# --- Owner of an imagined cluster as its controller sees it: as it was some time ago, since watches deliver late.

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


# --- Owner of what the controller of an imagined cluster remembers; it outlives its crashes.


class Remembered:
    """A MemoryStore in which each version is a number."""

    def __init__(self, memory: Memory) -> None:
        self._stored = VersionedMemory(memory, "0")

    def load(self) -> VersionedMemory:
        return self._stored

    def save(self, memory: Memory, after: VersionedMemory) -> VersionedMemory:
        if after.version != self._stored.version:
            raise Stale
        self._stored = VersionedMemory(memory, str(int(after.version) + 1))
        return self._stored


# --- Owner of how long there has been a controller that sees soon what happens: only so long it can be late.


class Presence:
    """Told when it begins and ends."""

    def __init__(self) -> None:
        self._since: Instant | None = None  # None: there is none now
        self._before_ms = 0

    def note(self, is_there: bool, now: Instant) -> None:
        """As it is from now on."""
        if self._since is not None:
            self._before_ms += now - self._since
        self._since = now if is_there else None

    def so_far_ms(self, now: Instant) -> int:
        """All together."""
        return self._before_ms + (0 if self._since is None else now - self._since)
