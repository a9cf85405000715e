"""Tells objects that are set aside of it, by an Event on each; owner of which were told."""

from collections.abc import Callable

from reconciler.kube.apply.events import Told
from reconciler.model.cluster.set_aside import SetAside
from reconciler.model.plan.action import Ref
from reconciler.model.plan.cycle_result import CycleResult
from reconciler.plan.guards.set_aside import MOST_TOLD, reason_of
from reconciler.ports import Fence
from reconciler.report.decision_text import note_of

_ACTION = "SetAside"


class SetAsidePublisher:
    """A Publisher: each object is told once for as long as it is set aside for the same reason."""

    def __init__(self, tell: Callable[[Told], None], fence: Callable[[], Fence | None]) -> None:
        self._tell = tell
        self._fence = fence
        self._told: frozenset[SetAside] = frozenset()

    def publish(self, cycled: CycleResult) -> None:
        if cycled.inputs is None or self._fence() is None:
            return
        found = [each for each in cycled.inputs.observed.set_aside if each.name][:MOST_TOLD]
        for each in found:
            if each not in self._told:
                self._tell(_told(each))
        self._told = frozenset(found)


def _told(found: SetAside) -> Told:
    subject = Ref(found.kind, found.namespace, found.name, found.uid)
    reason = reason_of(found)
    return Told(subject, reason.code, _ACTION, note_of(reason))
