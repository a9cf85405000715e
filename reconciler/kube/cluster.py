"""The live cluster as the loop knows it: an Observer's view of it, and writes by one identity."""

from collections.abc import Iterator, Sequence

from reconciler.kube.apply.executor import Executor
from reconciler.kube.observe import Observer
from reconciler.model.cluster.observed import Observed
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.outcome import Outcome
from reconciler.ports import Fence


class LiveCluster:
    """What is seen and what is written; whoever started the observer stops it."""

    def __init__(self, observer: Observer, applying: Executor) -> None:
        self._observer = observer
        self._applying = applying
        self._seen_at: Instant | None = None

    def observe(self) -> Observed:
        observed = self._observer.observe()
        self._seen_at = observed.seen_at or None
        return observed

    def seen_at(self) -> Instant | None:
        """How old the last observation is; from any thread."""
        return self._seen_at

    def apply(self, decisions: Sequence[Decision], fence: Fence) -> Iterator[Outcome]:
        return self._applying.apply(decisions, fence)
