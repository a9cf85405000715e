"""Publishers of a cycle's results: the status of policies, Events on objects that are set aside, and the log."""

import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Literal, TextIO

import msgspec

from reconciler.controller.cluster import current_instant
from reconciler.kube.apply.events import EventNote
from reconciler.loop import Attempts
from reconciler.model import names
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.refusal import SetAside
from reconciler.model.desired import Desired
from reconciler.model.plan.decision import Apply, Decision, Ref
from reconciler.model.plan.inputs import CycleResult, Inputs
from reconciler.plan.guards.set_aside import MOST_LISTED, reason_of
from reconciler.plan.status.conditions import StatusContext
from reconciler.ports import Clock, Cluster, Fence
from reconciler.report.applied import Level, LogLine, lines
from reconciler.report.conditions import received, statuses
from reconciler.report.decision_text import note_of


class StatusSink(msgspec.Struct, frozen=True):
    """Where it is told."""

    cluster: Cluster
    clock: Clock
    fence: Callable[[], Fence | None]  # None: nothing is told now
    are_resources: bool = False
    namespace: str = names.OWN_NAMESPACE


class StatusPublisher:
    """A Publisher."""

    def __init__(self, telling: StatusSink) -> None:
        self._telling = telling
        self._before = ""  # the ConfigMap as it was written last
        self._attempts = Attempts()

    def publish(self, cycled: CycleResult) -> None:
        """Where there are no good policies yet, why that is so is told all the more."""
        telling = self._telling
        fence = telling.fence()
        if fence is None:
            return
        inputs = cycled.inputs or Inputs(Desired("", ""), telling.cluster.observe(), cycled.at)
        context = StatusContext(cycled.problems, telling.are_resources, telling.namespace, self._before)
        due = self._attempts.due(statuses(inputs, cycled.plan, context), cycled.at)
        self._tell(due, fence)

    def receive(self, observed: Observed) -> None:
        """A bundle came and is judged next, which takes a while: until then its objects are Reconciling."""
        fence = self._telling.fence()
        if fence is not None:
            now = self._telling.clock.now()
            self._tell(self._attempts.due(received(observed, now), now), fence)

    def _tell(self, due: Sequence[Decision], fence: Fence) -> None:
        telling = self._telling
        decisions = {each.subject: each for each in due}
        for outcome in telling.cluster.apply(due, fence) if due else ():
            decision = decisions[outcome.subject]
            self._attempts.learn(decision, outcome, telling.clock.now())
            if outcome.result == "done" and isinstance(decision.act, Apply):
                self._before = decision.act.manifest


# --- Tells objects that are set aside of it, by an Event on each; owner of which were told.

_ACTION = "SetAside"


class SetAsidePublisher:
    """A Publisher: each object is told once for as long as it is set aside for the same reason."""

    def __init__(self, tell: Callable[[EventNote], None], fence: Callable[[], Fence | None]) -> None:
        self._tell = tell
        self._fence = fence
        self._set_asides: frozenset[SetAside] = frozenset()

    def publish(self, cycled: CycleResult) -> None:
        if cycled.inputs is None or self._fence() is None:
            return
        set_asides = [each for each in cycled.inputs.observed.set_aside if each.name][:MOST_LISTED]
        for each in set_asides:
            if each not in self._set_asides:
                self._tell(_event_note(each))
        self._set_asides = frozenset(set_asides)


def _event_note(set_aside: SetAside) -> EventNote:
    subject = Ref(set_aside.kind, set_aside.namespace, set_aside.name, set_aside.uid)
    reason = reason_of(set_aside)
    return EventNote(subject, reason.code, _ACTION, note_of(reason))


# --- The log of `run`, on standard error; a Log is the owner of what was told last, so that nothing is told twice.

Format = Literal["text", "json"]


class Log:
    """A Publisher; may be used from several threads."""

    def __init__(self, written: Format = "text", stream: TextIO = sys.stderr) -> None:
        self._format = written
        self._stream = stream
        self._before: CycleResult | None = None
        self._lock = threading.Lock()

    def publish(self, cycled: CycleResult) -> None:
        """What differs from the cycle before."""
        for line in lines(self._before, cycled):
            self.write(line)
        self._before = cycled

    def tell(self, event: str, sentence: str, level: Level = "info") -> None:
        """Something that is no cycle."""
        self.write(LogLine(event, sentence, level=level))

    def write(self, line: LogLine) -> None:
        now = current_instant()
        text = line.as_json(now).decode() if self._format == "json" else line.as_text(now)
        # Nobody may be reading any more, or there is no room: what nobody hears must end no thread.
        with self._lock, suppress(OSError, ValueError):
            self._stream.write(f"{text}\n")
            self._stream.flush()
