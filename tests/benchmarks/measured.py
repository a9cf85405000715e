"""One run of a command, with its time and its peak of memory."""

import os
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Measured:
    """What came of it. The peak is an upper bound: the kernel counts in what we ourselves held when we started it."""

    seconds: float
    peak_mib: int
    code: int
    output: str


def measured(command: list[str], cwd: Path | None = None) -> Measured:
    """Runs it to its end. Its output goes to a file: a pipe that nobody reads could stop it."""
    with tempfile.TemporaryFile("w+") as output:
        started = time.perf_counter()
        process = subprocess.Popen(command, cwd=cwd, stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        return Measured(seconds, usage.ru_maxrss // 1024, process.returncode, output.read())
