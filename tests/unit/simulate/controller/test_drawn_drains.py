"""Fleets drawn at random are drained for hours, whatever goes wrong: nothing is broken, and nothing is left behind."""

from pathlib import Path

import pytest

from tests.slow import long
from tests.stages.stories.drained.judging import faults_of
from tests.stages.stories.drained.witness import Outcome, drained

FEW_SEEDS, SEEDS = 16, 40
ONCE_FAILED = (1818,)  # each for something that was mended since


@pytest.mark.parametrize("seed", [*range(FEW_SEEDS), *ONCE_FAILED, *map(long, range(FEW_SEEDS, SEEDS))])
def test_whatever_the_fleet_and_what_goes_wrong_drains_keep_their_promises(seed: int, tmp_path: Path) -> None:
    assert faults_of(drained(tmp_path, seed)) == []


def test_the_same_seed_gives_the_same(tmp_path: Path) -> None:
    first, again = (_told(drained(tmp_path, 3)) for _ in range(2))
    assert first == again
    assert first != _told(drained(tmp_path, 1))


def _told(outcome: Outcome) -> object:
    return outcome.done, outcome.moved, outcome.simulated.sums
