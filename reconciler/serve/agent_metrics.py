"""Metrics of asks and of pressure, in the registry of all metrics. Without a registry, nothing is counted."""

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily

from reconciler.protocol.pressure_state import PressureFigures

PoolFigures = Mapping[tuple[str, str], PressureFigures]  # by pool and resource

_BUCKETS_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5)
_LABELS = ("pool", "resource")
_GAUGES: Mapping[str, tuple[str, Callable[[PressureFigures], int]]] = {
    "reconciler_pressure_reserved": (
        "What the pods of our scheduler have reserved, summed over nodes; thousandths of cpu, units of all others.",
        lambda figures: figures.reserved,
    ),
    "reconciler_pressure_buffer": (
        "What elastic pods with silent agents have reserved and may not use, summed over nodes.",
        lambda figures: figures.buffer,
    ),
    "reconciler_pressure_left": (
        "Pressure that no migration accounts for, summed over nodes.",
        lambda figures: figures.left,
    ),
}


class AgentMetrics:
    """Outcomes and durations of asks. Owns the counters; the main thread updates them."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self._asks = Counter(
            "reconciler_asks", "Asks of agents, by status of the answer.", ["status"], registry=registry
        )
        self._seconds = Histogram(
            "reconciler_ask_duration_seconds",
            "Duration of the answer to an ask.",
            buckets=_BUCKETS_SECONDS,
            registry=registry,
        )

    def answered(self, status: int, seconds: float) -> None:
        """Count an answer."""
        self._asks.labels(str(status)).inc()
        self._seconds.observe(seconds)


class PressureMetrics:
    """A collector: computes the figures at each scrape, on the thread that owns the desk."""

    def __init__(self, figures: Callable[[], PoolFigures], registry: CollectorRegistry) -> None:
        self._figures = figures
        registry.register(self)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        found = self._figures()
        for name, (sentence, value) in _GAUGES.items():
            family = GaugeMetricFamily(name, sentence, labels=_LABELS)
            for labels, figures in found.items():
                family.add_metric(labels, value(figures))
            yield family

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """So that registration computes nothing."""
        return (GaugeMetricFamily(name, sentence, labels=_LABELS) for name, (sentence, _) in _GAUGES.items())
