"""`run`: a replica of the controller; a Running is the owner of its threads and of its planner's process.

Beside the main thread, which serves HTTP: a thread a watched kind, one for the policies, one for leadership, one for
the loop's step, and those that write while a plan is carried out. On SIGTERM nothing more is sent, what was sent is
waited for, and the Lease is given back, in this order: the next replica then leads at once, and nobody writes beside
it.
"""

import asyncio
import gc
import signal
import socket
import threading
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from reconciler.controller import planner_process
from reconciler.controller.cluster import current_instant
from reconciler.controller.dry_run import Question
from reconciler.controller.policies import Origins, PolicyCache, follow_resources, watch
from reconciler.controller.publishers import Format, Log, SetAsidePublisher, StatusPublisher, StatusSink
from reconciler.kube.apply.execute import Executor
from reconciler.kube.client import Timeouts, connect
from reconciler.kube.cluster import LiveCluster
from reconciler.kube.leader import Candidacy, Leader
from reconciler.kube.memory_store import ConfigMapMemory
from reconciler.kube.observe import ObservedScope, Observer
from reconciler.kube.policies import ResourcePolicies
from reconciler.loop import Cycle, LoopDependencies
from reconciler.loop.child import ChildPlanner
from reconciler.model.cluster.observed import Observed
from reconciler.model.instant import Instant
from reconciler.model.plan.inputs import CycleResult
from reconciler.ports import Publisher
from reconciler.protocol.leadership import LeaseTiming, pace_of
from reconciler.serve.metrics import Metrics
from reconciler.serve.server import Answers, ListenAddress, Server, application, probes
from reconciler.sources.watched import WatchedSource

# Ten seconds of writing, at the rate at which one writes: nobody who freezes, or takes a commit back, waits for longer.
MOST_AT_ONCE = 200
LAST_STEP_SECONDS = 2.0  # for what has been sent to be answered; after that the Lease runs out by itself


class Settings(msgspec.Struct, frozen=True):
    """What a person chooses."""

    question: Question
    address: ListenAddress = ListenAddress("127.0.0.1", 8080)
    probe_address: ListenAddress | None = None
    history: Path | None = None
    lease_seconds: int = 15
    log_format: Format = "text"

    @property
    def namespace(self) -> str:
        return self.question.place.namespace


class Running:
    """One replica. Raises Unreachable where there is no cluster to be asked."""

    def __init__(self, settings: Settings) -> None:
        pace = pace_of(settings.lease_seconds)
        question, context = settings.question, settings.question.place.context
        self._log = Log(settings.log_format)
        self._metrics = Metrics()
        self._clock = WakingClock()
        self._client = connect(context)
        self._lease_client = connect(context, _timeouts(pace))
        self._observer = Observer(self._client, ObservedScope(settings.namespace), on_change=self._clock.wake)
        wishes = PolicyCache(question.environment)
        self._policies = self._followed(question.origins, wishes)
        applying = Executor(self._client)
        cluster = LiveCluster(self._observer, applying)
        me = f"{socket.gethostname()}_{uuid.uuid4()}"
        candidacy = Candidacy(me, settings.namespace, pace=pace)
        self._leader = Leader(self._lease_client, candidacy, self._on_leadership, cluster.seen_at)
        self._planner = ChildPlanner(planner_process.command(settings.history))
        telling = StatusSink(cluster, self._clock, self._leader.term, question.origins.resources, settings.namespace)
        self._statuses = StatusPublisher(telling)
        self._notices = Notices()
        aside = SetAsidePublisher(applying.tell, self._leader.term)
        publishers: tuple[Publisher, ...] = (self._log, self._metrics, self._notices, self._statuses, aside)
        memory = ConfigMapMemory(self._client, settings.namespace)
        parts = LoopDependencies(
            wishes, cluster, memory, self._planner, self._clock, publishers, most_at_once=MOST_AT_ONCE
        )
        cycle = Cycle(parts)
        step = LoopStep(cycle, self._leader, self._clock, self._log, self.is_ready, self._keep_up)
        self._looping = LoopThread(step)
        self._is_synced = False
        self._led = False

    def start(self, address: ListenAddress) -> None:
        self._log.tell("started", f"reconciler runs as {self._leader.me} and listens on {address}")
        self._policies.start()
        self._observer.start()
        self._leader.start()
        self._looping.start()

    def stop(self) -> bool:
        """In about two seconds, whatever goes on. Says whether all that was sent has been answered."""
        self._log.tell("stopping", "nothing more is written")
        self._leader.resign()
        self._planner.close()
        has_answers = self._looping.stop(LAST_STEP_SECONDS)
        if has_answers:
            self._leader.release()
        self._policies.stop()
        self._observer.stop()
        for client in (self._client, self._lease_client):
            client.close()
        given_back = "was given back" if has_answers else "is left to run out, since a write was not answered"
        self._log.tell("stopped", f"leadership {given_back}" if self._led else "it did not lead")
        return has_answers

    def is_ready(self) -> bool:
        return not self.why_unready()

    def why_unready(self) -> str:
        """A replica that waits for its turn is ready too."""
        if not self._policies.wait_until_read(0):
            return "the policies have not been read yet"
        if not self._is_synced:
            self._is_synced = self._observer.wait_until_synced(0)
            if not self._is_synced:
                return "the cluster has not been read yet"
            gc.collect()
            gc.freeze()  # what was seen first stays for long
        return ""

    def why_not_ready(self) -> str:
        """The same for who probes: where nobody leads nothing is done, whichever replica is asked."""
        return self.why_unready() or self._leader.why_leaderless

    def notices(self) -> tuple[str, ...]:
        return self._notices.told

    def why_unhealthy(self) -> str:
        if not self._looping.is_alive:
            return "the loop has ended"
        return "" if self._leader.is_alive else "the candidacy for leadership has ended"

    def metrics(self) -> bytes:
        self._metrics.leaderless(bool(self._leader.why_leaderless))
        return self._metrics.text()

    def _keep_up(self) -> None:
        """What is good of the policies is known here too: when the other replica ends, they may not be whole."""
        self._observer.observe()
        self._policies.latest()

    def _followed(self, origins: Origins, wishes: PolicyCache) -> WatchedSource | ResourcePolicies:
        source: WatchedSource | ResourcePolicies
        if origins.resources:
            source = follow_resources(self._observer.observe, wishes.judge, self._receive)
        else:
            source = watch(origins, self._clock.wake, wishes.judge)
        wishes.follow(source)
        return source

    def _receive(self, observed: Observed) -> None:
        self._statuses.receive(observed)

    def _on_leadership(self) -> None:
        leads = self._leader.term() is not None
        self._metrics.lead(leads)
        if leads != self._led:
            self._led = leads
            self._notices.forget()
            self._log.tell("leadership", "this replica leads" if leads else "this replica does not lead any more")
        if trouble := self._leader.trouble:
            self._log.tell("leadership", trouble, "warning")
        self._clock.wake()


def _timeouts(pace: LeaseTiming) -> Timeouts:
    """Well within the time that a term lasts, so that there is a second try."""
    return Timeouts(connect_seconds=pace.renew_ms / 3_000, answer_seconds=pace.renew_ms / 2_000)


class End(msgspec.Struct, frozen=True):
    """How it came to its end: by which signal, and whether threads still wait for answers, for which nobody should."""

    signal: int
    is_stuck: bool


def run(settings: Settings) -> End:
    """Until SIGTERM or Ctrl-C. Raises Unreachable, OSError."""
    running = Running(settings)
    answers = Answers(running.why_unhealthy, running.why_not_ready, running.metrics, running.notices)
    servers = [Server(settings.address, application(answers))]
    if settings.probe_address is not None:
        servers.append(Server(settings.probe_address, probes(answers)))
    return asyncio.run(_serve(running, servers))


async def _serve(running: Running, servers: Sequence[Server]) -> End:
    stopped_by: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, _settle, stopped_by, each)
    serving = asyncio.gather(*(each.serve() for each in servers))
    running.start(servers[0].address)
    has_answers = False
    try:
        await asyncio.wait((stopped_by, serving), return_when=asyncio.FIRST_COMPLETED)
    finally:
        has_answers = await asyncio.to_thread(running.stop)
        for server in servers:
            server.stop()
        await serving
    return End(stopped_by.result() if stopped_by.done() else 0, not has_answers)


def _settle(stopped_by: asyncio.Future[int], number: int) -> None:
    """A second signal says nothing new."""
    if not stopped_by.done():
        stopped_by.set_result(number)


# --- The loop's Clock: owner of whether something has happened since it last looked.

SETTLE_SECONDS = 0.1  # what one command writes comes as many changes
LOOK_SECONDS = 30.0  # the wall clock may be set while we wait for an hour of it


class WakingClock:
    """`wake` may be called from any thread."""

    def __init__(self) -> None:
        self._happened = threading.Event()
        self._hurry = threading.Event()  # nothing is worth settling for

    def now(self) -> Instant:
        return current_instant()

    def wake(self) -> None:
        self._happened.set()

    def hurry(self) -> None:
        """From now on nobody waits here."""
        self._hurry.set()
        self._happened.set()

    def wait(self, until: Instant | None) -> None:
        """Until then, or until something happens, and a moment more for what comes with it; or until the hour is set
        back, since then nobody knows any more how long that would be."""
        before = self.now()
        while not self._hurry.is_set():
            now = self.now()
            if now < before:
                return
            before = now
            left_seconds = LOOK_SECONDS if until is None else (until - now) / 1000
            if left_seconds <= 0:
                return
            if self._happened.wait(min(left_seconds, LOOK_SECONDS)):
                self._hurry.wait(SETTLE_SECONDS)
                self._happened.clear()
                return


# --- The loop's step on a thread of its own, while this replica leads; a Looping is the owner of that thread.
#
# A thread, since the step is synchronous and waits for the planner and for the API server, and the endpoints must not.

_AFTER_A_FAULT_MS = 5_000


class LoopStep(msgspec.Struct, frozen=True):
    """What a step needs."""

    cycle: Cycle
    leader: Leader
    clock: WakingClock
    log: Log
    is_ready: Callable[[], bool]  # policies and cluster have been read once
    keep_up: Callable[[], object]  # takes in what was seen, though nothing is planned


class LoopThread:
    """Runs until it is stopped."""

    def __init__(self, step: LoopStep) -> None:
        self._step = step
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="loop", daemon=True)

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_seconds: float) -> bool:
        """No step begins any more; says whether the last one is over."""
        self._stop.set()
        self._step.clock.hurry()
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                wake_at = self._once()
            except Exception as fault:  # noqa: BLE001 - a thread that ends would leave the cluster alone without a word
                text = f"a cycle broke off, by a fault of reconciler: {type(fault).__name__}: {fault}"
                self._step.log.tell("fault", text, "error")
                wake_at = Instant(self._step.clock.now() + _AFTER_A_FAULT_MS)
            self._step.clock.wait(wake_at)

    def _once(self) -> Instant | None:
        """One cycle, if this replica leads and has something to go by. Says when to look again."""
        term = self._step.leader.term()
        if term is None or not self._step.is_ready():
            self._step.keep_up()  # or watches would stand still, and the next leader would begin with old news
            return None
        cycled = self._step.cycle.once(term)
        for text in cycled.unpublished:
            self._step.log.tell("fault", text, "error")
        return cycled.wake_at


# --- What is amiss though the controller works, for /readyz: owner of what the last cycles told of.

_FEW = 3  # that are named
_OFTEN = 3  # cycles in a row after which trouble is told: one cycle may fail for what is over at once


class Notices:
    """A Publisher; read on another thread, which sees one tuple or the next."""

    def __init__(self) -> None:
        self._in_a_row: dict[str, int] = {}
        self.told: tuple[str, ...] = ()

    def publish(self, cycled: CycleResult) -> None:
        found = {f"the cycle came to nothing: {cycled.trouble}"} if cycled.trouble else set()
        for trouble in cycled.plan.troubles if cycled.plan is not None else ():
            place = f" for pool {trouble.pool}" if trouble.pool else ""
            found.add(f"{trouble.planner} could not plan{place}: {trouble.error}")
        self._in_a_row = {each: self._in_a_row.get(each, 0) + 1 for each in found}
        often = sorted(each for each, times in self._in_a_row.items() if times >= _OFTEN)
        self.told = (*_set_aside(cycled), *(f"in {self._in_a_row[each]} cycles in a row {each}" for each in often))

    def forget(self) -> None:
        """Another replica leads from now on."""
        self._in_a_row, self.told = {}, ()


def _set_aside(cycled: CycleResult) -> tuple[str, ...]:
    set_asides = cycled.inputs.observed.set_aside if cycled.inputs is not None else ()
    if not set_asides:
        return ()
    named = ", ".join(each.title for each in set_asides[:_FEW])
    more = f" and {len(set_asides) - _FEW} more" if len(set_asides) > _FEW else ""
    return (f"objects that cannot be understood are set aside, and what depends on them is left alone: {named}{more}",)
