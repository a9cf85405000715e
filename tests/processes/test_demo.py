"""The demo tells its story anywhere, in time, within the terminal; and what it leaves can be gone on with."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

RECONCILER = [sys.executable, "-m", "reconciler"]
LONGEST_SECONDS = 60
PAINT = re.compile(r"\x1b\[[0-9;]*[mK]")


def run(*arguments: str, cwd: Path) -> str:
    done = subprocess.run([*RECONCILER, *arguments], cwd=cwd, capture_output=True, text=True, check=True, timeout=120)
    assert done.stderr == "" or "note:" in done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp("anywhere")
    began = time.monotonic()
    output = run("demo", "--folder", "left", cwd=folder)
    assert time.monotonic() - began < LONGEST_SECONDS, "that is what the demo promises"
    return output, folder / "left"


def test_it_tells_a_review_that_is_blocked_and_the_ways_on(told: tuple[str, Path]) -> None:
    output, _ = told
    assert "BLOCKED by guard fleet: 640 GPUs in use would be disrupted, 64 allowed" in output
    assert "minGPUUtilizationPercent: 70 -> 80       in place; target size 114 -> 100" in output
    assert re.search(r"also without this change\n +- +empty, scaled down +6 +48 +-131\.76  08:30Z, marked now", output)
    assert "the guard allows scaling of a100-training if it is the only change; or" in output


def test_it_shows_scenario_a_as_time_passes(told: tuple[str, Path]) -> None:
    output, _ = told
    rows = re.findall(r"(\d\d:\d\dZ) +(\d+) +(\d+) +(\d+|-) +(\d+) +([\d.]+) %", output)
    assert [row[:5] for row in rows] == [
        ("08:00Z", "120", "80", "-", "0"),
        ("08:00Z", "120", "80", "100", "20"),
        ("08:30Z", "100", "80", "100", "0"),
    ]
    assert "20 empty nodes deleted; no pods moved, no pod waited" in output
    assert "Will be deleted at 08:30Z (in 11 min) if still empty." in output


def test_what_it_says_to_try_next_can_be_tried(told: tuple[str, Path]) -> None:
    output, folder = told
    tried = [line.split() for line in re.findall(r"^   reconciler (.*)$", output, re.MULTILINE)]
    assert [each[0] for each in tried] == ["plan", "explain", "simulate", "import"]
    plan, explain, simulate = (run(*each, cwd=folder) for each in tried[:3])
    assert "empty, scaled down" in plan
    assert "if still empty" in explain
    assert "no safety rule broken" in simulate
    assert "<svg" in (folder / "report.html").read_text() or "no plots" in output


def test_no_line_is_wider_than_the_terminal(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 80, 0, 0))
    command = [*RECONCILER, "demo", "--fast", "--folder", "left"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=theirs, env={**os.environ, "TERM": "xterm"}) as running:
        os.close(theirs)
        output = b"".join(_until_closed(ours))
    os.close(ours)
    assert running.returncode == 0
    lines = [part for part in re.split(r"[\r\n]+", PAINT.sub("", output.decode())) if part]
    assert len(lines) > 100
    assert [line for line in lines if len(line) > 80] == []


def _until_closed(terminal: int) -> Iterator[bytes]:
    while True:
        try:
            yield os.read(terminal, 65_536)
        except OSError:  # nobody has the other end any more
            return
