"""A program with a lab of its own, started to be interrupted."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.lab.places import REPOSITORY

SECONDS = 90


class Run:
    """Starts it with its temporary files in a folder where we can see them."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=REPOSITORY,
            env={**os.environ, "TMPDIR": str(folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            preexec_fn=_interruptible,  # noqa: PLW1509 - one system call
        )

    def alive(self) -> list[str]:
        """Command lines that name the folder: the parts of its lab."""
        return list(self.parts().values())

    def parts(self) -> dict[int, str]:
        """The same by process id."""
        found = {}
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                line = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue  # it ended meanwhile
            if str(self.folder) in line:
                found[int(entry.parent.name)] = line
        return found

    def logs(self, part: str) -> list[Path]:
        """The log of one part, once something is in it."""
        return [path for path in self.folder.glob(f"reconciler-lab-*/{part}.log") if path.stat().st_size]

    def wait_until(self, is_so: Callable[[], object]) -> None:
        deadline = time.monotonic() + SECONDS
        while not is_so():
            assert time.monotonic() < deadline, f"not within {SECONDS} s; alive: {self.alive()}"
            assert self.process.poll() is None, f"ended too early: {self.process.communicate()[0][-2000:]}"
            time.sleep(0.05)

    def send(self, number: signal.Signals) -> None:
        """As a terminal does: to the whole group."""
        os.killpg(self.process.pid, number)


def _interruptible() -> None:
    """As from a terminal: what a shell starts in the background is born deaf to Ctrl-C, and so are its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
