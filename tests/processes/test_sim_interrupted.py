"""Plays side by side tell how far they are, and end with whoever started them: by Ctrl-C, and when one is killed."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.controller.simulation.load import SimulationRequest, prepared
from reconciler.controller.simulation.run import side_by_side
from tests.lab.places import REPOSITORY
from tests.slow import long

EXAMPLE = REPOSITORY / "examples" / "taint-edit"
SOON_SECONDS = 30  # on a busy machine


class Played:
    """Owner of a command that would play for minutes, in a group of processes of its own."""

    def __init__(self, folder: Path) -> None:
        example = shutil.copytree(EXAMPLE, folder / "example")
        file = example / "scenario.yaml"
        file.write_text(file.read_text(encoding="utf-8").replace("duration: 12h", "duration: 4000h"), encoding="utf-8")
        sets = [each for name in ("before", "after") for each in ("--policies", str(example / "policies" / name))]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "reconciler", "simulate", str(file), *sets, "--jobs", "2"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            cwd=REPOSITORY,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - one system call
        )

    def workers(self) -> list[int]:
        """As soon as both are there."""
        tasks = Path(f"/proc/{self.process.pid}/task")
        until = time.monotonic() + SOON_SECONDS
        while time.monotonic() < until:
            children = {int(each) for task in tasks.glob("*/children") for each in children_of(task)}
            found = [each for each in children if "spawn_main" in command_of(each)]
            if len(found) == 2:
                return found
            time.sleep(0.01)
        raise AssertionError("no workers were started")

    def ended(self) -> tuple[int, str]:
        """Exit code and what it told, within seconds; and nobody is left."""
        _, told = self.process.communicate(timeout=SOON_SECONDS)
        until = time.monotonic() + SOON_SECONDS
        while self.is_left() and time.monotonic() < until:
            time.sleep(0.05)
        assert not self.is_left()
        return self.process.returncode, told

    def is_left(self) -> bool:
        """Whether any process of the group is."""
        try:
            os.killpg(self.process.pid, 0)
        except ProcessLookupError:
            return False
        return True


def children_of(task: Path) -> list[str]:
    try:
        return task.read_text().split()
    except OSError:
        return []


def command_of(pid: int) -> str:
    """Nothing where it has ended meanwhile."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


@pytest.fixture
def played(tmp_path: Path) -> Iterator[Played]:
    started = Played(tmp_path)
    yield started
    if started.is_left():
        os.killpg(started.process.pid, signal.SIGKILL)
    started.process.communicate(timeout=SOON_SECONDS)


@pytest.mark.parametrize("after_seconds", [0.0, long(0.3), long(3.0)])
def test_an_interrupt_ends_them_all(played: Played, after_seconds: float) -> None:
    played.workers()
    time.sleep(after_seconds)
    os.killpg(played.process.pid, signal.SIGINT)
    code, told = played.ended()
    assert (code, told.split()) == (130, ["interrupted"])


def test_one_that_is_killed_is_told_in_a_sentence(played: Played) -> None:
    first, _ = played.workers()
    time.sleep(2)
    os.kill(first, signal.SIGKILL)
    code, told = played.ended()
    assert code == 1
    assert told.startswith("Error: a simulation process was killed")
    assert "Traceback" not in told


def test_how_far_they_are_is_told_as_they_go() -> None:
    sets = tuple(EXAMPLE / "policies" / name for name in ("before", "after"))
    heard: list[float] = []
    found = side_by_side(prepared(SimulationRequest(EXAMPLE / "scenario.yaml", sets)).plays, 2, heard.append)
    assert [each.label for each in found] == ["before", "after"]
    assert heard == sorted(heard)
    assert heard[-1] == 1
    assert len({each for each in heard if 0 < each < 1}) > 1
