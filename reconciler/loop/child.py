"""Planning in a child process, so that planning does not slow down the endpoints of the parent."""

import gc
import os
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import IO

import msgspec

from reconciler.loop.cycle import InProcess
from reconciler.model.cluster.observed import Observed
from reconciler.model.plan.inputs import Inputs, Succession, Successor, successor
from reconciler.model.plan.plan import Plan
from reconciler.plan.check import BrokenInvariant
from reconciler.plan.reason_catalog import decoded
from reconciler.ports import Unavailable

# --- Messages between parent and planner: length-prefixed JSON over two pipes, one answer per question.
#
# A question is a Successor: the difference to the inputs of the previous question.

_LENGTH_BYTES = 8


class PlanAnswer(msgspec.Struct, frozen=True):
    """A plan, or the error that prevented it."""

    plan: Plan | None = None
    broken: str = ""  # invariants that the plan would break
    fault: str = ""  # any other error


class Ended(Exception):
    """The other end of the pipe is closed."""


def say(pipe: IO[bytes], message: Successor | PlanAnswer) -> None:
    """Writes one message. Raises Ended."""
    content = msgspec.json.encode(message)
    try:
        pipe.write(len(content).to_bytes(_LENGTH_BYTES, "big"))
        pipe.write(content)
        pipe.flush()
    except (OSError, ValueError) as fault:
        raise Ended from fault


def hear(pipe: IO[bytes]) -> bytes:
    """Reads one message. Raises Ended."""
    try:
        length = pipe.read(_LENGTH_BYTES)
        content = pipe.read(int.from_bytes(length, "big")) if len(length) == _LENGTH_BYTES else b""
    except (OSError, ValueError) as fault:
        raise Ended from fault
    if not content or len(content) < int.from_bytes(length, "big"):
        raise Ended
    return content


# --- A Brain that plans in a child process. A ChildPlanner owns the process.
#
# If the child ends, or exceeds its time limit, there is no plan and nothing is applied; the next question starts
# another child with complete inputs. The child is spawned, not forked, and runs with low priority.

LONGEST_SECONDS = 120.0
_END_SECONDS = 1.0


class ChildPlanner:
    """`command` starts a process that calls `serve`. `plan` is called from one thread, `close` from any."""

    def __init__(self, command: Sequence[str], longest_seconds: float = LONGEST_SECONDS) -> None:
        self._command = command
        self._longest_seconds = longest_seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._inputs: Inputs | None = None  # inputs known to the child
        self._is_closed = False
        self._lock = threading.Lock()

    @property
    def pid(self) -> int | None:
        """Process id of the child; None without a child."""
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
            raise Unavailable(f"no plan was made: {self._end(process)}; the planner is restarted") from fault
        except BaseException:  # a late answer would be taken for the answer to another question
            self._end(process)
            raise
        finally:
            overdue.cancel()
        if answer.broken:
            raise BrokenInvariant(answer.broken)
        if answer.plan is None:
            raise Unavailable(f"no plan was made because of a bug in reconciler: {answer.fault}")
        return answer.plan

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            process = self._process
        if process:
            self._end(process)

    def _ask(self, process: subprocess.Popen[bytes], inputs: Inputs) -> PlanAnswer:
        if process.stdin is None or process.stdout is None:
            raise Ended
        before, self._inputs = self._inputs, None  # unknown until the child answers
        say(process.stdin, successor(before, inputs))
        answer = decoded(hear(process.stdout), PlanAnswer)
        self._inputs = inputs
        return answer

    def _running(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._is_closed:
                raise Unavailable("no plan was made: planning has ended")
            if self._process is not None and self._process.poll() is not None:
                self._end(self._process)  # the child died between two questions; its pipes are still open
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
                start_new_session=True,  # Ctrl-C in a terminal reaches only the parent, which ends the child
            )
        except OSError as fault:
            raise Unavailable(f"no plan was made: the planner could not be started: {fault}") from fault

    def _end(self, process: subprocess.Popen[bytes]) -> str:
        """Ends the process, and describes its end."""
        try:
            code = process.wait(timeout=0.0 if self._is_closed else _END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe:
                with suppress(OSError, ValueError):  # unwritten data is of no use
                    pipe.close()
        self._inputs = None
        return f"the planner was ended by signal {-code}" if code < 0 else f"the planner ended with {code}"


# --- Child side: owns a copy of the observed state and of the fleet, and answers one question after another.

NICENESS = 10

Received = Callable[[Observed], None]
Planned = Callable[[Inputs, Plan], None]


def serve(received: Received, planned: Planned) -> None:
    """Runs until the parent ends. `received` gets each snapshot first; `planned` gets each plan after it was sent."""
    os.nice(NICENESS)
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as answers, suppress(Ended):
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nothing that prints may write between the answers
        succession, brain, is_frozen = Succession(), InProcess(), False
        while True:
            question = decoded(hear(sys.stdin.buffer), Successor)
            received(question.inputs.observed)
            inputs, plan = succession.take(question), None
            try:
                plan = brain.plan(inputs)
                answer = PlanAnswer(plan)
            except BrokenInvariant as broken:
                answer = PlanAnswer(broken=str(broken))
            except Exception as fault:  # noqa: BLE001 - whatever it is, the next cluster may be another
                traceback.print_exc()
                brain = InProcess()  # the fleet may be inconsistent after an error
                answer = PlanAnswer(fault=f"{type(fault).__name__}: {fault}")
            say(answers, answer)
            if plan is not None:
                planned(inputs, plan)
            if not is_frozen:  # the first objects live long
                gc.collect()
                gc.freeze()
                is_frozen = True
