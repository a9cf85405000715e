"""Plays are played: one after the other in this process, or several at once."""

from collections.abc import Callable, Sequence

from reconciler.controller.simulation.parallel import side_by_side
from reconciler.report.simulation.simulated import Simulated
from reconciler.simulate.runner.play import Play
from reconciler.simulate.runner.run import RunOptions, run

Tell = Callable[[float], None]  # how far it is, in parts of 1


def played(plays: Sequence[Play], jobs: int, tell: Tell) -> tuple[Simulated, ...]:
    """In the order of the plays, whichever is done first. Raises WorkerLost, and what staging.run raises."""
    if jobs > 1 and len(plays) > 1:
        return side_by_side(plays, jobs, tell)
    simulateds = []
    for number, play in enumerate(plays):
        simulateds.append(run(play, RunOptions(tell=_part(tell, number, len(plays)))))
    return tuple(simulateds)


def _part(tell: Tell, number: int, plays: int) -> Tell:
    return lambda part: tell((number + part) / plays)
