"""The real control loop on a simulated cluster."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence

import msgspec

from reconciler.loop.cycle import Cycle, InProcess, LoopDependencies
from reconciler.model.cluster.observed import QUIET_MS, Observed
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Decision, Outcome, Ref
from reconciler.model.plan.inputs import ClaimScheduler, CycleResult
from reconciler.model.plan.memory import Memory
from reconciler.ports import Fence, PlanService, Policies, Publisher, Stale, VersionedMemory
from reconciler.protocol.preconditions import Object
from reconciler.simulate.extender import SimulatedExtender
from reconciler.simulate.objects import Key, ObjectWrite, key_of
from reconciler.simulate.observer import SimulatedObserver
from reconciler.simulate.stage import Stage, let_go
from reconciler.simulate.world import ProcessKilled, World

# --- The control loop's step, driven by engine events; a Controller owns the state of its simulated process.
#
# The controller is woken by observed changes, or at its plan's wake time, with at most one cycle per `cycle_every_ms`.
# A slow API server is simulated by an older snapshot at the time of the writes.

_SETTLES_MS = 100  # changes within this time are handled together
_WRITERS = 16
_SOON_MS = 10_000


class ControllerSettings(msgspec.Struct, frozen=True):
    cycle_every_ms: int = 1_000
    watch_delay_ms: int = 200
    answer_delay_ms: int = 20
    restart_ms: int = 2_000  # until a new process starts its first cycle
    brain: Callable[[], PlanService] = InProcess
    memory: Memory = Memory()
    scheduler: ClaimScheduler = "external"


class SimulatedController:
    """A Cluster, a Clock and a Fence for its own cycles."""

    def __init__(
        self,
        policies: Policies,
        publishers: tuple[Publisher, ...] = (),
        setting: ControllerSettings | None = None,
        extender: SimulatedExtender | None = None,
    ) -> None:
        """`extender`: the scheduler extender of the same process."""
        self._setting = setting or ControllerSettings()
        self.watch_delay_ms = self._setting.watch_delay_ms
        self.answer_delay_ms = self._setting.answer_delay_ms
        self._policies = policies
        self._publishers = publishers
        self._extender = extender
        self._memory = Remembered(self._setting.memory)
        self._cycle: Cycle | None = None  # None: no process is running
        self._view: LateView | None = None
        self._due: Instant | None = None  # start of the next cycle
        self._free_at = Instant(0)
        self._dies_after: int | None = None  # remaining writes before a crash
        self._present_since: Instant | None = None  # None: no controller runs with fresh observations
        self._present_ms = 0  # until then
        self._is_away = False  # stopped until an explicit restart

    def start(self, stage: Stage) -> None:
        self._stage = stage
        self._cluster_uid = stage.world.observe().cluster_uid
        stage.world.subscribe(self._noted)
        stage.world.on_write = self._wrote
        if self._extender is not None:
            self._extender.on_kill = self.crash
        self.resume()

    def wake(self) -> None:
        """Policies have changed."""
        self._look_at(Instant(self._stage.now + _SETTLES_MS))

    def crash(self, after_writes: int = 0) -> None:
        """Kills the process, now or after so many more writes, and restarts it; stored state survives."""
        if after_writes:
            self._dies_after = after_writes
        elif self._cycle is not None:
            self._end()
            self._stage.engine.after(self._setting.restart_ms, "the controller starts again", self._begin)

    def stop(self) -> None:
        """Stops the controller until `resume`; other restarts are ignored."""
        self._is_away = True
        self._end()

    def resume(self) -> None:
        """Starts a new process with stored and observed state."""
        self._is_away = False
        self._begin()

    def _end(self) -> None:
        self._cycle, self._view, self._due, self._dies_after = None, None, None, None
        if self._extender is not None:
            self._extender.end_process()
        self._note_presence()
        let_go(self._stage.world.observe())  # releases the memory of the dead process

    def _begin(self) -> None:
        if self._cycle is not None or self._is_away:
            return
        self._view = LateView(self._stage.world, self._cluster_uid)
        if self._extender is not None:
            self._extender.begin_process()
        brain = self._setting.brain()
        parts = LoopDependencies(
            self._policies, self, self._memory, brain, self, self._publishers, scheduler=self._setting.scheduler
        )
        self._cycle = Cycle(parts)
        self._note_presence()
        self._look_at(self._stage.now)

    def delay(self, watch_ms: int, answer_ms: int) -> None:
        self.watch_delay_ms, self.answer_delay_ms = watch_ms, answer_ms
        if self._extender is not None:
            self._extender.watch_delay_ms = max(0, watch_ms - self._setting.watch_delay_ms)
        self._note_presence()

    def presence_ms(self) -> int:
        """Total time in which the controller ran with fresh observations: only then can reactions be late."""
        since = self._present_since
        return self._present_ms + (0 if since is None else self._stage.now - since)

    def remembered(self) -> Memory:
        return self._memory.load().memory

    def _note_presence(self) -> None:
        self._present_ms = self.presence_ms()
        is_present = self._cycle is not None and self.watch_delay_ms + self.answer_delay_ms <= _SOON_MS
        self._present_since = self._stage.now if is_present else None

    # Ports

    def observe(self) -> Observed:
        if self._view is None:
            raise TypeError("no process is running")
        return self._view.observe(self.watch_delay_ms + self.answer_delay_ms)

    def apply(self, decisions: Sequence[Decision], fence: Fence) -> Iterator[Outcome]:
        return self._stage.world.apply(decisions, fence)

    def holds(self) -> bool:
        """The only process is the leader."""
        return self._cycle is not None

    def now(self) -> Instant:
        return self._stage.now

    def wait(self, until: Instant | None) -> None:
        raise TypeError("waiting is not supported")

    # Scheduling of cycles

    def _noted(self, written: ObjectWrite) -> None:
        if self._view is None:
            return
        self._view.note(written)
        self._look_at(self._delivered(self._stage.now))

    def _delivered(self, at: Instant) -> Instant:
        """When a change of that time is observed."""
        return Instant(at + self.watch_delay_ms + self.answer_delay_ms + _SETTLES_MS)

    def _look_at(self, when: Instant) -> None:
        """Schedules a cycle at that time or the earliest allowed one; an earlier scheduled cycle stays."""
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
        """None if the process was killed; its memory is then released."""
        try:
            return cycle.once(self)
        except ProcessKilled:
            return None

    def _wrote(self, ref: Ref) -> None:
        if self._dies_after is not None:
            self._dies_after -= 1
            if self._dies_after <= 0:
                raise ProcessKilled(ref.title)


# --- Owner of the controller's delayed view of the cluster, which simulates watch latency.

_KEPT = 1_000  # changes before old ones are merged


class LateView:
    """Each object is read only in its latest visible state, and only when observed."""

    def __init__(self, world: World, cluster_uid: str) -> None:
        self._world = world
        self._simulated_observer = SimulatedObserver(cluster_uid, world.known, world.own_namespace)
        self._late: deque[tuple[Instant, Key, Object | None]] = deque()
        self._due: dict[Key, Object | None] = {}
        self._delay_ms = 0
        for kind in world.kinds():
            self._due.update((key_of(body), body) for body in world.of(kind))

    def note(self, written: ObjectWrite) -> None:
        self._late.append((self._world.now, written.key, written.after))
        if len(self._late) > _KEPT:
            self._put_together()

    @property
    def next_from(self) -> Instant | None:
        """Time of the oldest change that is not visible yet."""
        return self._late[0][0] if self._late else None

    def observe(self, delay_ms: int) -> Observed:
        """The state of `delay_ms` ago; never older than shown before."""
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


# --- Owner of the controller's memory, which survives crashes.


class Remembered:
    """A MemoryStore with numbered versions."""

    def __init__(self, memory: Memory) -> None:
        self._stored = VersionedMemory(memory, "0")

    def load(self) -> VersionedMemory:
        return self._stored

    def save(self, memory: Memory, after: VersionedMemory) -> VersionedMemory:
        if after.version != self._stored.version:
            raise Stale
        self._stored = VersionedMemory(memory, str(int(after.version) + 1))
        return self._stored
