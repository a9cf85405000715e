"""Several plays at once, each in a process of its own; a worker is owner of where it tells how far it is.

Processes are started afresh (spawn) and only for `--jobs` above one: a simulation keeps one core busy, and several sets
of policies know nothing of each other. Ctrl-C is for the process that started them: it ends them.
"""

import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from ctypes import Array, c_double
from multiprocessing import active_children, get_context
from multiprocessing.process import BaseProcess

from reconciler.report.simulation.simulated import Simulated
from reconciler.simulate.runner.play import Play
from reconciler.simulate.runner.run import RunOptions, run

Parts = Array[c_double]  # how far each play is, in parts of 1

_LOOKS_SECONDS = 0.2
_ENDS_WITHIN_SECONDS = 2

_parts: list[Parts] = []  # in a worker: one


class WorkerLost(Exception):
    """A process came to an end before its play did."""

    def __init__(self) -> None:
        super().__init__("a process that played policies was killed, perhaps for want of memory: try fewer --jobs")


def side_by_side(plays: Sequence[Play], jobs: int, tell: Callable[[float], None]) -> tuple[Simulated, ...]:
    """In the order of the plays, whichever is done first. Raises WorkerLost, and what staging.run raises."""
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
            each.result()  # what one of them raises, the others are not waited for
        # The pool itself may not watch one that it started when it already waited for another.
        if any(each.exitcode is not None for each in workers):
            raise WorkerLost
    return tuple(each.result() for each in futures)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """A process that is started in here is never interrupted; this one is, afterwards."""
    heard: list[int] = []
    # Threads of libraries may hear what this thread does not, and Python would interrupt this one for it.
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
    """Nobody waits for what is played: the processes end now."""
    pool.shutdown(wait=False, cancel_futures=True)
    workers = [each for each in active_children() if each not in others]
    for each in workers:
        each.terminate()
    for each in workers:
        each.join(_ENDS_WITHIN_SECONDS)


def _begin(parts: Parts) -> None:
    """In a worker, before it plays."""
    _parts.append(parts)


def _played(number: int, play: Play) -> Simulated:
    def tell(part: float) -> None:
        _parts[0][number] = part

    return run(play, RunOptions(tell=tell))
