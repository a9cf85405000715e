"""Fleets drawn by the thousand that are drained for hours, judged as each forty of them are in tests/unit."""

import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from random import Random
from time import monotonic

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from tests.results.record import Recorder, Result
from tests.stages.stories.drained.drawn import drawn
from tests.stages.stories.drained.judging import faults_of, within
from tests.stages.stories.drained.witness import outcome_of
from tests.stages.stories.left import left_of
from tests.unit.plan.drain.stage import World
from tests.unit.plan.drain.test_names import Json, candidates, fleets, renamed

STORIES, AT_ONCE, PROCESSES = 20_000, 100, 2


class Told(msgspec.Struct, frozen=True):
    """Of some stories: what was done, and what failed by its seed."""

    done: dict[str, int]
    restarts: int
    timers_lost: int
    faults: dict[int, list[str]]


@pytest.mark.soak
def test_whatever_the_fleet_and_what_goes_wrong_drains_keep_their_promises(recorder: Recorder, tmp_path: Path) -> None:
    began, done, faults, restarts, lost = monotonic(), Counter[str](), dict[int, list[str]](), 0, 0
    with ProcessPoolExecutor(PROCESSES, get_context("spawn")) as processes:
        for told in processes.map(told_of, range(0, STORIES, AT_ONCE)):
            done.update(told.done)
            faults |= told.faults
            restarts += told.restarts
            lost += told.timers_lost
    figures: dict[str, float | int | str] = {
        **done,
        "restarts": restarts,
        "timers_lost_without_hints": lost,
        "minutes": round((monotonic() - began) / 60),
    }
    what = "fleets drawn at random and drained for hours, in which a promise of draining was not kept"
    recorder.write(Result("soak-drawn-drains", what, STORIES, len(faults), 0, figures))
    assert faults == {}, list(small(faults, tmp_path))


@pytest.mark.soak
@settings(max_examples=20_000, deadline=None)
@given(fleets(), some.integers(0, 1_000_000))
def test_the_number_of_candidates_does_not_depend_on_names(case: Json, seed: int) -> None:
    inputs = World(case).inputs
    assert candidates(renamed(inputs, Random(seed))) == candidates(inputs)


def told_of(first: int) -> Told:
    """So many stories from there."""
    done, faults, restarts, lost = Counter[str](), dict[int, list[str]](), 0, 0
    for seed in range(first, first + AT_ONCE):
        try:
            with tempfile.TemporaryDirectory() as folder:
                outcome = outcome_of(drawn(Path(folder), seed))
        except Exception as fault:  # noqa: BLE001 - one that breaks off must not end the others
            faults[seed] = [f"it broke off: {fault!r}"]
            continue
        done.update(outcome.done)
        restarts += outcome.tried
        lost += outcome.timers_lost
        if found := faults_of(outcome):
            faults[seed] = found
    return Told(dict(done), restarts, lost, faults)


def small(faults: dict[int, list[str]], folder: Path) -> Iterator[str]:
    """What they fail, and what is left of each in a file."""
    for seed, found in faults.items():
        yield f"seed {seed}: {found}"
        with tempfile.TemporaryDirectory() as read_from:
            play = drawn(Path(read_from), seed)
        yield left_of(play, within(play), folder / f"small-{seed}.yaml")
