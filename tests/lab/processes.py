"""Owner of the processes that the lab starts: starts them, waits until they answer, and stops exactly them."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_PR_SET_PDEATHSIG = 1


class NotStarted(Exception):
    """A process of the lab ended, or did not answer in time; the message carries the end of its log."""


@dataclass
class Child:
    """One started process and its log."""

    name: str
    log: Path
    process: subprocess.Popen[bytes] = field(repr=False)

    @property
    def pid(self) -> int:
        return self.process.pid

    def running(self) -> bool:
        return self.process.poll() is None

    def last_words(self, lines: int = 15) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def wait_until(self, ready: Callable[[], bool], within_seconds: float = 60) -> None:
        deadline = time.monotonic() + within_seconds
        while time.monotonic() < deadline:
            if not self.running():
                raise NotStarted(f"{self.name} ended with {self.process.returncode}:\n{self.last_words()}")
            if ready():
                return
            time.sleep(0.05)
        raise NotStarted(f"{self.name} did not answer within {within_seconds:g} s:\n{self.last_words()}")

    def stop(self, patience_seconds: float = 10) -> None:
        """Ends it: politely, then after a while by its process id. A stopped (SIGSTOP) one is woken to hear it."""
        if not self.running():
            return
        self.process.terminate()
        self.process.send_signal(signal.SIGCONT)
        try:
            self.process.wait(patience_seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def start(name: str, command: Sequence[str | Path], log: Path, environment: Mapping[str, str] | None = None) -> Child:
    """Starts a process in a group of its own: a Ctrl-C at the terminal reaches us, and we end things in order.

    Must be called on the main thread: the kernel ends the child when the *thread* that started it ends, which is
    what keeps a killed test run from leaving an API server behind.
    """
    with log.open("ab") as output:
        process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
            process_group=0,
            # One system call and no allocation: safe enough beside threads.
            preexec_fn=_die_with_parent,  # noqa: PLW1509
        )
    return Child(name, log, process)


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
