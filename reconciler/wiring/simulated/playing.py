"""Plays are played: in this process, or several at once, each in a process of its own.

Processes are started afresh (spawn) and only for `--jobs` above one: a simulation keeps one core busy, and several sets
of policies know nothing of each other.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

from reconciler.report.simulated.simulated import Simulated
from reconciler.simulate.playing.play import Play
from reconciler.simulate.playing.staging import Watched, run

Tell = Callable[[float], None]  # how far it is, in parts of 1


def played(plays: Sequence[Play], jobs: int, tell: Tell) -> tuple[Simulated, ...]:
    """In the order of the plays, whichever is done first. Raises what staging.run raises."""
    if jobs > 1 and len(plays) > 1:
        return _side_by_side(plays, jobs, tell)
    found = []
    for number, play in enumerate(plays):
        found.append(run(play, Watched(tell=_part(tell, number, len(plays)))))
    return tuple(found)


def _part(tell: Tell, number: int, plays: int) -> Tell:
    return lambda part: tell((number + part) / plays)


def _side_by_side(plays: Sequence[Play], jobs: int, tell: Tell) -> tuple[Simulated, ...]:
    with ProcessPoolExecutor(min(jobs, len(plays)), get_context("spawn")) as pool:
        futures = [pool.submit(run, play) for play in plays]
        for done, _ in enumerate(as_completed(futures), 1):
            tell(done / len(plays))
        return tuple(each.result() for each in futures)
