"""A Brain whose plans are made by a child process; a ChildPlanner is the owner of that process.

If the child ends, or takes longer than it may, there is no plan and nothing is applied; the next question starts
another and tells it everything. It is started afresh, not forked, and gives way to whoever else wants to run.
"""

import subprocess
import threading
from collections.abc import Sequence
from typing import IO

import msgspec

from reconciler.loop.child.ipc import Ended, PlanAnswer, hear, say
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.inputs_delta import successor
from reconciler.model.plan.plan import Plan
from reconciler.plan.check import BrokenInvariant
from reconciler.plan.reason_catalog import decoded
from reconciler.ports import Unavailable

LONGEST_SECONDS = 120.0
_END_SECONDS = 1.0


class ChildPlanner:
    """`command` starts a process that calls `serving.serve`; asked from one thread, closed from any."""

    def __init__(self, command: Sequence[str], longest_seconds: float = LONGEST_SECONDS) -> None:
        self._command = command
        self._longest_seconds = longest_seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._inputs: Inputs | None = None  # what the child knows
        self._is_closed = False
        self._lock = threading.Lock()

    @property
    def pid(self) -> int | None:
        """Of the child; None while there is none."""
        process = self._process
        return process.pid if process and process.poll() is None else None

    def plan(self, inputs: Inputs) -> Plan:
        """Raises BrokenInvariant, Unavailable."""
        process = self._running()
        overdue = threading.Timer(self._longest_seconds, process.kill)
        overdue.daemon = True
        overdue.start()
        try:
            answer = self._ask(process, inputs)
        except (Ended, msgspec.MsgspecError) as fault:
            raise Unavailable(f"no plan was made: {self._end(process)}; it is started again") from fault
        except BaseException:  # its answer may come yet, and would be taken for that to another question
            self._end(process)
            raise
        finally:
            overdue.cancel()
        if answer.broken:
            raise BrokenInvariant(answer.broken)
        if answer.plan is None:
            raise Unavailable(f"no plan was made, by a fault of reconciler: {answer.fault}")
        return answer.plan

    def close(self) -> None:
        """Ends the child, whatever it is at."""
        with self._lock:
            self._is_closed = True
            process = self._process
        if process:
            self._end(process)

    def _ask(self, process: subprocess.Popen[bytes], inputs: Inputs) -> PlanAnswer:
        if process.stdin is None or process.stdout is None:
            raise Ended
        before, self._inputs = self._inputs, None  # until it has answered, nobody knows what it knows
        say(process.stdin, successor(before, inputs))
        answer = decoded(hear(process.stdout), PlanAnswer)
        self._inputs = inputs
        return answer

    def _running(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._is_closed:
                raise Unavailable("no plan was made: planning has ended")
            if self._process is not None and self._process.poll() is not None:
                self._end(self._process)  # it died between two questions, and its pipes are still ours
                self._process = None
            if self._process is None:
                self._process = self._started()
            return self._process

    def _started(self) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C in a terminal is for us, and we end it
            )
        except OSError as fault:
            raise Unavailable(f"no plan was made: the planner could not be started: {fault}") from fault

    def _end(self, process: subprocess.Popen[bytes]) -> str:
        """Says how it ended."""
        try:
            code = process.wait(timeout=0.0 if self._is_closed else _END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe:
                _close(pipe)
        self._inputs = None
        return f"the planner was ended by signal {-code}" if code < 0 else f"the planner ended with {code}"


def _close(pipe: IO[bytes]) -> None:
    """What is still to be written can't be, which is no news."""
    try:
        pipe.close()
    except (OSError, ValueError):
        return
