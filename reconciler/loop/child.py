"""Planning in a process of its own, so that a busy planner costs the endpoints of its parent nothing."""

import gc
import os
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from typing import IO

import msgspec

from reconciler.loop.cycle import InProcess
from reconciler.model.cluster.observed import Observed
from reconciler.model.plan.inputs import Inputs, Succession, Successor, successor
from reconciler.model.plan.plan import Plan
from reconciler.plan.check import BrokenInvariant
from reconciler.plan.reason_catalog import decoded
from reconciler.ports import Unavailable

# --- What a parent and its planner say to one another: lengths and JSON over two pipes, one answer a question.
#
# A question is a Successor: the inputs, told by what is different from the question before.

_LENGTH_BYTES = 8


class PlanAnswer(msgspec.Struct, frozen=True):
    """A plan, or why there is none."""

    plan: Plan | None = None
    broken: str = ""  # the invariants that it would break
    fault: str = ""  # whatever else went wrong


class Ended(Exception):
    """Nobody is at the other end."""


def say(pipe: IO[bytes], message: Successor | PlanAnswer) -> None:
    """Raises Ended."""
    content = msgspec.json.encode(message)
    try:
        pipe.write(len(content).to_bytes(_LENGTH_BYTES, "big"))
        pipe.write(content)
        pipe.flush()
    except (OSError, ValueError) as fault:
        raise Ended from fault


def hear(pipe: IO[bytes]) -> bytes:
    """One message. Raises Ended."""
    try:
        length = pipe.read(_LENGTH_BYTES)
        content = pipe.read(int.from_bytes(length, "big")) if len(length) == _LENGTH_BYTES else b""
    except (OSError, ValueError) as fault:
        raise Ended from fault
    if not content or len(content) < int.from_bytes(length, "big"):
        raise Ended
    return content


# --- A Brain whose plans are made by a child process; a ChildPlanner is the owner of that process.
#
# If the child ends, or takes longer than it may, there is no plan and nothing is applied; the next question starts
# another and tells it everything. It is started afresh, not forked, and gives way to whoever else wants to run.

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


# --- The child's side: owner of a copy of what is observed and of the fleet, and answers one question after another.

NICENESS = 10

Received = Callable[[Observed], None]
Planned = Callable[[Inputs, Plan], None]


def serve(received: Received, planned: Planned) -> None:
    """Until its parent ends. `received` is shown what comes before anyone else has seen it; `planned` hears of each
    plan after it has been handed on."""
    os.nice(NICENESS)
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nothing that prints may get between the answers
        serving = _Serving(received, planned)
        try:
            while True:
                serving.answer(sys.stdin.buffer, answers)
        except Ended:
            return


class _Serving:
    def __init__(self, received: Received, planned: Planned) -> None:
        self._received = received
        self._planned = planned
        self._succession = Succession()
        self._brain = InProcess()
        self._is_frozen = False

    def answer(self, questions: IO[bytes], answers: IO[bytes]) -> None:
        successor = decoded(hear(questions), Successor)
        self._received(successor.inputs.observed)
        inputs = self._succession.take(successor)
        plan, answer = None, PlanAnswer()
        try:
            plan = self._brain.plan(inputs)
            answer = PlanAnswer(plan)
        except BrokenInvariant as broken:
            answer = PlanAnswer(broken=str(broken))
        except Exception as fault:  # noqa: BLE001 - whatever it is, the next cluster may be another
            traceback.print_exc()
            self._brain = InProcess()  # a fleet that was left in the middle of something is no fleet
            answer = PlanAnswer(fault=f"{type(fault).__name__}: {fault}")
        say(answers, answer)
        if plan is not None:
            self._planned(inputs, plan)
        if not self._is_frozen:  # what was told first stays for long
            gc.collect()
            gc.freeze()
            self._is_frozen = True
