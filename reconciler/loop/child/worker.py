"""The child's side: owner of a copy of what is observed and of the fleet, and answers one question after another."""

import gc
import os
import sys
import traceback
from collections.abc import Callable
from typing import IO

from reconciler.loop.child.ipc import Ended, PlanAnswer, hear, say
from reconciler.loop.planning import InProcess
from reconciler.model.cluster.observed import Observed
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.inputs_delta import Succession, Successor
from reconciler.model.plan.plan import Plan
from reconciler.plan.check import BrokenInvariant
from reconciler.plan.reason_catalog import decoded

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
