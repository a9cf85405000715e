"""Labs stopped at any moment of their start, by any signal: nothing of them is left."""

import random
import signal
import time
from pathlib import Path

import pytest

from tests.live.stopping.interrupted_run import Run
from tests.results.record import Recorder, Result

RUNS, SEED = 40, 1


@pytest.mark.soak
@pytest.mark.usefixtures("lab")
def test_no_moment_and_no_signal_leaves_a_process(tmp_path: Path, recorder: Recorder) -> None:
    moments = random.Random(SEED)
    left = []
    for number in range(RUNS):
        after_seconds = moments.uniform(0, 7)
        sent = moments.choice([signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
        folder = tmp_path / str(number)
        folder.mkdir()
        run = Run(folder, "-m", "tests.lab")
        time.sleep(after_seconds)
        run.send(sent)
        run.process.communicate(timeout=40)
        # The kernel tells a killed run's children a moment later.
        deadline = time.monotonic() + 5
        while run.alive() and time.monotonic() < deadline:
            time.sleep(0.05)
        if run.alive() or (sent != signal.SIGKILL and any(folder.glob("reconciler-lab-*"))):
            left.append((after_seconds, sent.name, run.alive()))
    what = "labs stopped at a random moment by SIGINT, SIGTERM or SIGKILL that left a process, or a folder"
    recorder.write(Result("soak-interrupts", what, RUNS, len(left), SEED))
    assert left == []
