"""A cluster as it was seen once, for a command that acts once."""

from collections.abc import Iterator, Sequence

from reconciler.kube.apply.executor import Executor
from reconciler.model.cluster.observed import Observed
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.outcome import Outcome
from reconciler.ports import Fence


class LookedOnce:
    """What was seen, and writes by one identity."""

    def __init__(self, observed: Observed, applying: Executor) -> None:
        self._observed = observed
        self._applying = applying

    def observe(self) -> Observed:
        return self._observed

    def apply(self, decisions: Sequence[Decision], fence: Fence) -> Iterator[Outcome]:
        return self._applying.apply(decisions, fence)
