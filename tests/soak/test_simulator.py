"""Stories drawn by chance: in none of them do the real planners break a rule; and each seed tells the same again."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from reconciler.simulate.runner.play import Play
from reconciler.simulate.runner.run import RunOptions, run
from tests.lab.places import REPOSITORY
from tests.results.record import Recorder, Result
from tests.stages.stories.drawn import SEED, drawn
from tests.stages.stories.left import left_of, unsafe

STORIES = 40
SEEDS = 12
EXAMPLE = REPOSITORY / "examples" / "taint-edit" / "scenario.yaml"


@pytest.mark.soak
def test_real_planners_break_no_rule(recorder: Recorder, tmp_path: Path) -> None:
    failed, writes, evictions = [], 0, 0
    for number in range(STORIES):
        play = drawn(tmp_path, number)
        told = run(play)
        if unsafe(told):
            failed.append(play)
        writes, evictions = writes + told.sums.actions, evictions + told.sums.evictions
    what = "stories drawn by chance in which a rule of safety was broken, or a cycle came to nothing"
    figures: dict[str, float | int | str] = {"writes_of_ours": writes, "evictions": evictions}
    recorder.write(Result("soak-simulated-stories", what, STORIES, len(failed), SEED, figures))
    small = [left_of(each, faults, tmp_path / f"small-{each.seed}.yaml") for each in failed]
    assert small == []
    assert writes > 10 * STORIES
    assert evictions > 0


def faults(play: Play) -> frozenset[str]:
    return unsafe(run(play, RunOptions(stops_when_broken=True)))


@pytest.mark.soak
def test_every_seed_tells_the_same_in_every_process(recorder: Recorder) -> None:
    differ = [seed for seed in range(SEEDS) if len({told(seed, hashes) for hashes in (1, 2, 3)}) > 1]
    what = "seeds with which processes that hash texts otherwise told another story"
    recorder.write(Result("soak-simulated-bytes", what, SEEDS, len(differ), SEED))
    assert differ == []


def told(seed: int, hash_seed: int) -> bytes:
    command = [sys.executable, "-m", "reconciler", "simulate", str(EXAMPLE), "--seed", str(seed), "-o", "json"]
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    done = subprocess.run(command, capture_output=True, cwd=Path(REPOSITORY), env=environment, check=False)
    assert done.returncode in {0, 1}, done.stderr.decode()
    return done.stdout
