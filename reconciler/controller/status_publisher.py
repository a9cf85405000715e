"""Tells policies how they stand; a StatusPublisher is the owner of what it told last and of what it could not tell."""

from collections.abc import Callable, Sequence

import msgspec

from reconciler.loop import Attempts
from reconciler.model import names
from reconciler.model.cluster.observed import Observed
from reconciler.model.desired import Desired
from reconciler.model.plan.action import Apply
from reconciler.model.plan.cycle_result import CycleResult
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.status.context import StatusContext
from reconciler.ports import Clock, Cluster, Fence
from reconciler.report.conditions.statuses import received, statuses


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
