"""Metrics of the scheduler extender: durations of the phases of an allocation, and failures by reason.

Phases: `queue`, from the creation of the pod to the first request to bind the pod; `reserve`, the live read of the pod
and the choice of the GPUs; `leases`, the writes of the Leases; `binding`, the write of the Binding.
"""

from collections.abc import Iterable
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Histogram

AllocationPhase = Literal["queue", "reserve", "leases", "binding"]
_PHASES: tuple[AllocationPhase, ...] = ("queue", "reserve", "leases", "binding")
# From a read of one object to a pod that waits for a node to be bought.
_BUCKETS_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800)


class ClaimMetrics:
    """Owns the figures; updated on the main thread."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self._seconds = Histogram(
            "reconciler_claim_allocation_seconds",
            "Duration of an allocation of GPUs to a pod, by phase.",
            ["phase"],
            buckets=_BUCKETS_SECONDS,
            registry=registry,
        )
        self._failures = Counter(
            "reconciler_claim_failures",
            "Requests of the scheduler that gave a pod with a GpuClaim no node, by reason.",
            ["reason"],
            registry=registry,
        )
        for phase in _PHASES:  # published before the first observation
            self._seconds.labels(phase)

    def allocated(self, durations: Iterable[tuple[AllocationPhase, float]]) -> None:
        """The durations of the phases of one pod that was bound, in seconds."""
        for phase, seconds in durations:
            self._seconds.labels(phase).observe(max(0.0, seconds))  # the clocks of pods and of this machine differ

    def fail(self, reason: str) -> None:
        """`reason`: the class of an obstacle, or another word for what went wrong."""
        self._failures.labels(reason).inc()
