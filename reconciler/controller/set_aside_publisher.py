"""Tells objects that are set aside of it, by an Event on each; owner of which were told."""

from collections.abc import Callable

from reconciler.kube.apply.events import EventNote
from reconciler.model.cluster.set_aside import SetAside
from reconciler.model.plan.action import Ref
from reconciler.model.plan.cycle_result import CycleResult
from reconciler.plan.guards.set_aside import MOST_LISTED, reason_of
from reconciler.ports import Fence
from reconciler.report.decision_text import note_of

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
