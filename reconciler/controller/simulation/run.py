"""Runs simulations: sequentially, in parallel processes, shrunk to a small failing scenario, or as the forecast of a
plan."""

import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from ctypes import Array, c_double
from multiprocessing import active_children, get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

import msgspec

from reconciler.controller.dry_run import DryRun
from reconciler.controller.simulation.load import relative
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant, timestamp
from reconciler.model.quantity import Duration
from reconciler.plan.files.dump import PlanningResult
from reconciler.report.simulation.simulated import Simulated
from reconciler.report.simulation.simulated_document import APPROVED, WITH, WITHOUT, Forecast
from reconciler.simulate.bootstrap.check_names import unknown_names
from reconciler.simulate.runner.play import Play, Revised
from reconciler.simulate.runner.run import RunOptions, run
from reconciler.simulate.runner.shrink import MOST_TRIES, how_it_fails, shrink
from reconciler.simulate.scenario.reading import scenario_text
from reconciler.simulate.scenario.spec import Scenario, ScenarioRevision

Tell = Callable[[float], None]  # progress from 0 to 1


def played(plays: Sequence[Play], jobs: int, tell: Tell) -> tuple[Simulated, ...]:
    """Results in the order of the plays. Raises WorkerLost, and the errors of staging.run."""
    if jobs > 1 and len(plays) > 1:
        return side_by_side(plays, jobs, tell)
    return tuple(run(play, _watched(tell, number, len(plays))) for number, play in enumerate(plays))


def _watched(tell: Tell, number: int, runs: int) -> RunOptions:
    """Options of one of several runs, each of which is an equal part of the progress."""
    return RunOptions(tell=lambda part: tell((number + part) / runs))


# --- Parallel plays, each in its own process. A worker owns its progress entry.
#
# Processes are spawned, and only for `--jobs` above one: a simulation keeps one core busy, and sets of policies are
# independent. Ctrl-C is handled by the parent, which ends the workers.

Parts = Array[c_double]  # progress of each play, from 0 to 1

_LOOKS_SECONDS = 0.2
_ENDS_WITHIN_SECONDS = 2

_parts: list[Parts] = []  # one in each worker


class WorkerLost(Exception):
    """A process ended before its play."""

    def __init__(self) -> None:
        super().__init__("a simulation process was killed, perhaps because of insufficient memory: try fewer --jobs")


def side_by_side(plays: Sequence[Play], jobs: int, tell: Callable[[float], None]) -> tuple[Simulated, ...]:
    """Results in the order of the plays. Raises WorkerLost, and the errors of staging.run."""
    context = get_context("spawn")
    parts: Parts = context.RawArray(c_double, len(plays))
    others = active_children()
    pool = ProcessPoolExecutor(min(jobs, len(plays)), context, _begin, (parts,))
    try:
        with _uninterrupted():
            futures = [pool.submit(_played, number, play) for number, play in enumerate(plays)]
        workers = [each for each in active_children() if each not in others]
        simulateds = _awaited(futures, workers, lambda: tell(sum(parts) / len(plays)))
    except BrokenProcessPool:
        _abandon(pool, others)
        raise WorkerLost from None
    except BaseException:
        _abandon(pool, others)
        raise
    pool.shutdown()
    return simulateds


def _awaited(
    futures: Sequence[Future[Simulated]], workers: Sequence[BaseProcess], tell: Callable[[], None]
) -> tuple[Simulated, ...]:
    left = set(futures)
    while left:
        done, left = wait(left, _LOOKS_SECONDS)
        tell()
        for each in done:
            each.result()  # do not wait for the others if one fails
        # The pool may miss the end of a process that it started while already waiting for another.
        if any(each.exitcode is not None for each in workers):
            raise WorkerLost
    return tuple(each.result() for each in futures)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Processes started in this block ignore interrupts; this process handles them afterwards."""
    heard: list[int] = []
    # Threads of libraries may receive the signal, and Python would then interrupt this thread.
    handler = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if heard:
        raise KeyboardInterrupt


def _abandon(pool: ProcessPoolExecutor, others: Sequence[BaseProcess]) -> None:
    """Ends the processes now."""
    pool.shutdown(wait=False, cancel_futures=True)
    workers = [each for each in active_children() if each not in others]
    for each in workers:
        each.terminate()
    for each in workers:
        each.join(_ENDS_WITHIN_SECONDS)


def _begin(parts: Parts) -> None:
    _parts.append(parts)


def _played(number: int, play: Play) -> Simulated:
    def tell(part: float) -> None:
        _parts[0][number] = part

    return run(play, RunOptions(tell=tell))


# --- Search for a small scenario that fails like a larger one.


class ScenarioRelocation(msgspec.Struct, frozen=True):
    """Old and new location of a scenario: file names are relative to it."""

    before: Path
    after: Path

    def path(self, named: str) -> str:
        return relative(self.before / named, self.after) if named else named


def shrunk(play: Play, moved: ScenarioRelocation, tell: Callable[[float], None]) -> str:
    """The text of the smallest scenario found."""
    before = how_it_fails(run(play))
    tries = 0

    def fails(smaller: Play) -> bool:
        nonlocal tries
        tries += 1
        tell(tries / MOST_TRIES)
        if any(unknown_names((smaller,))):  # the smaller scenario must be valid
            return False
        return bool(before & how_it_fails(run(smaller, RunOptions(stops_when_broken=True))))

    small = shrink(play, fails)
    return scenario_text(f"{small.name}-shrunk", _moved(msgspec.structs.replace(small.scenario, seed=play.seed), moved))


def _moved(scenario: Scenario, moved: ScenarioRelocation) -> Scenario:
    replace, cluster = msgspec.structs.replace, scenario.cluster
    cluster = replace(cluster, dump=moved.path(cluster.dump), openb_nodes=moved.path(cluster.openb_nodes))
    workloads = [
        replace(each, trace=replace(each.trace, openb_pods=moved.path(each.trace.openb_pods))) if each.trace else each
        for each in scenario.workloads
    ]
    policies = [replace(each, folder=moved.path(each.folder)) for each in scenario.policies]
    return replace(scenario, cluster=cluster, workloads=workloads, policies=policies)


# --- Forecast of a plan: the simulator, starting from the snapshot of the cluster.
#
# The present load continues: running pods keep running, and lost pods are recreated by their owners.

_SHORT_MS = 6 * 3_600_000
_LONGER_CYCLES = Duration(30_000)  # over days, cycles each second would add nothing


def forecast(planned: DryRun, head: PlanningResult, ahead: Duration, tell: Tell) -> Forecast:
    """Forecast of the plan. Raises NoCapacity."""
    base = planned.base
    policies = (head.inputs.desired, base.inputs.desired) if base is not None else ()
    before = run(_play(WITHOUT, base, ahead, policies), _watched(tell, 0, 3)) if base is not None else None
    play = _play(WITH if base is not None else "", head, ahead, policies)
    after = run(play, _watched(tell, 1, 3))
    if not after.sums.held_by_guards:
        return Forecast(after, before)
    desired = msgspec.structs.replace(play.first, guards=())
    unheld = msgspec.structs.replace(play, label=APPROVED, revisions=(Revised(0, desired),))
    labelled = msgspec.structs.replace(after, label=WITH)
    return Forecast(labelled, before, run(unheld, _watched(tell, 2, 3)))


def _play(label: str, scene: PlanningResult, ahead: Duration, priced_by: tuple[Desired, ...]) -> Play:
    inputs = scene.inputs
    start = Instant(inputs.now - inputs.now % 1_000)
    scenario = Scenario(
        start=timestamp(start),
        duration=ahead,
        policies=[ScenarioRevision(revision=inputs.desired.revision)],
        cycle_every=Duration(1_000) if ahead.milliseconds <= _SHORT_MS else _LONGER_CYCLES,
    )
    revised = (Revised(0, inputs.desired),)
    return Play(
        "forecast", scenario, revised, 1, label, observed=inputs.observed, memory=inputs.memory, priced_by=priced_by
    )
