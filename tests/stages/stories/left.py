"""What is left of a play that fails: a small scenario that still fails in one of the same ways, in a file."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from reconciler.report.simulation.simulated import Simulated
from reconciler.simulate.runner.play import Play
from reconciler.simulate.runner.shrink import shrink
from reconciler.simulate.scenario.reading import scenario_text

MOST_TRIES = 80

Faults = Callable[[Play], frozenset[str]]


def unsafe(told: Simulated) -> frozenset[str]:
    """The rules of safety that were broken, and whether cycles came to nothing."""
    return frozenset([*(each.rule for each in told.broken), *(["a cycle came to nothing"] if told.troubles else [])])


def left_of(play: Play, faults: Faults, file: Path) -> str:
    """Writes it there; a sentence with the ways in which the play failed, and where what is left of it stands."""
    before = faults(play)
    small = shrink(play, lambda smaller: bool(before & faults(smaller)), MOST_TRIES)
    scenario = msgspec.structs.replace(small.scenario, seed=play.seed)
    file.write_text(scenario_text(f"{play.name}-small", scenario), encoding="utf-8")
    return f"{'; '.join(sorted(before))}: reconciler simulate {file}"
