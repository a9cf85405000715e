"""Publishers of cycle results: status of policies, Events about ignored objects, and the log."""

import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Literal, TextIO

from reconciler.controller.cluster import current_instant
from reconciler.kube.apply.events import EventNote
from reconciler.loop.retries import Attempts
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


class StatusPublisher:
    """A Publisher of policy statuses, to objects if policies are custom resources. Without a fence, nothing is told."""

    def __init__(
        self, cluster: Cluster, clock: Clock, fence: Callable[[], Fence | None], are_resources: bool, namespace: str
    ) -> None:
        self._cluster, self._clock, self._fence = cluster, clock, fence
        self._are_resources, self._namespace = are_resources, namespace
        self._before = ""  # content of the ConfigMap as last written
        self._attempts = Attempts()

    def publish(self, cycled: CycleResult) -> None:
        """Publishes the statuses, also if there are no good policies yet, with the reason."""
        fence = self._fence()
        if fence is None:
            return
        inputs = cycled.inputs or Inputs(Desired("", ""), self._cluster.observe(), cycled.at)
        context = StatusContext(cycled.problems, self._are_resources, self._namespace, self._before)
        due = self._attempts.due(statuses(inputs, cycled.plan, context), cycled.at)
        self._tell(due, fence)

    def receive(self, observed: Observed) -> None:
        """Sets objects of a new bundle to Reconciling until the bundle is checked, which takes a while."""
        fence = self._fence()
        if fence is not None:
            now = self._clock.now()
            self._tell(self._attempts.due(received(observed, now), now), fence)

    def _tell(self, due: Sequence[Decision], fence: Fence) -> None:
        decisions = {each.subject: each for each in due}
        for outcome in self._cluster.apply(due, fence) if due else ():
            decision = decisions[outcome.subject]
            self._attempts.learn(decision, outcome, self._clock.now())
            if outcome.result == "done" and isinstance(decision.act, Apply):
                self._before = decision.act.manifest


# --- Events for ignored objects. Owns the set of objects that already have their Event.

_ACTION = "SetAside"


class SetAsidePublisher:
    """A Publisher: one Event per object and reason for being ignored."""

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
                subject, reason = Ref(each.kind, each.namespace, each.name, each.uid), reason_of(each)
                self._tell(EventNote(subject, reason.code, _ACTION, note_of(reason)))
        self._set_asides = frozenset(set_asides)


# --- Log of `run` on standard error. A Log owns the last published state, to avoid repetition.

Format = Literal["text", "json"]


class Log:
    """A Publisher; thread-safe."""

    def __init__(self, written: Format = "text", stream: TextIO = sys.stderr) -> None:
        self._format = written
        self._stream = stream
        self._before: CycleResult | None = None
        self._lock = threading.Lock()

    def publish(self, cycled: CycleResult) -> None:
        """Logs the difference to the previous cycle."""
        for line in lines(self._before, cycled, is_grouped=self._format == "text"):
            self.write(line)
        self._before = cycled

    def tell(self, event: str, sentence: str, level: Level = "info") -> None:
        """Logs an event other than a cycle."""
        self.write(LogLine(event, sentence, level=level))

    def write(self, line: LogLine) -> None:
        now = current_instant()
        text = line.as_json(now).decode() if self._format == "json" else line.as_text(now)
        # Standard error may be closed or full; that must not end a thread.
        with self._lock, suppress(OSError, ValueError):
            self._stream.write(f"{text}\n")
            self._stream.flush()
