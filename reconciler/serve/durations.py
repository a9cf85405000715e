"""How long parts of a cycle take, and nodes that go; owner of the figures, moved like those in metrics.py."""

from prometheus_client import CollectorRegistry, Histogram

from reconciler.model.plan.cycle_result import CycleResult

WHOLE = "main"  # a cycle
EMPTY, NON_EMPTY = "scale_down_empty", "scale_down_non_empty"
# From a plan of a small cluster to the drain of a node full of work.
_BUCKETS_SECONDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200)


class Durations:
    """By the name of a function, as other autoscalers call it."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds = Histogram(
            "reconciler_function_duration_seconds",
            "How long the parts of a cycle take, and, from when a node is kept from pods until its deletion, nodes.",
            ["function"],
            registry=registry,
            buckets=_BUCKETS_SECONDS,
        )
        for function in (EMPTY, NON_EMPTY):  # told before there is the first
            self._seconds.labels(function)

    def publish(self, cycled: CycleResult) -> None:
        for function, spent_ms in cycled.spent_ms:
            self.observe(function, spent_ms / 1_000)
        self.observe(WHOLE, sum(spent_ms for _, spent_ms in cycled.spent_ms) / 1_000)

    def observe(self, function: str, seconds: float) -> None:
        """Once more."""
        self._seconds.labels(function).observe(max(0.0, seconds))
