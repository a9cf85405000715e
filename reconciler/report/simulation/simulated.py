"""Simulated: what came of one simulation, and of several beside one another."""

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from reconciler.model.instant import Instant, span
from reconciler.report.wording import dollars, per_mille, percent


class PoolStep(msgspec.Struct, frozen=True, gc=False):
    """A pool at one moment; its nodes without those that are being deleted."""

    pool: str
    nodes: int
    busy_nodes: int
    gpus: int
    gpus_used: int
    tainted: int  # nodes that are about to leave by our hand
    target: int | None = None  # where a provisioner sizes it
    provisioner: str = ""


class Did(msgspec.Struct, frozen=True, gc=False):
    """One write of the controller that took effect."""

    at: Instant
    verb: str
    subject: str
    reason: str


class TimelineStep(msgspec.Struct, frozen=True, gc=False):
    """How things stood at a moment, and what happened since the moment before."""

    at: Instant
    pools: tuple[PoolStep, ...]
    pending_pods: int  # the most at once since the moment before
    pending_gpus: int  # likewise
    longest_wait_seconds: int  # of the pods that waited since then, so far
    micro_dollars_per_hour: int
    bought: int = 0
    removed: int = 0
    evicted: int = 0
    lost: int = 0
    finished: int = 0
    did: tuple[Did, ...] = ()
    did_more: int = 0  # writes that are not told one by one


class PoolSum(msgspec.Struct, frozen=True):
    """A pool over all the time."""

    pool: str
    gpu_ms: int  # GPUs that were there, times how long
    gpu_ms_used: int
    micro_dollars: int
    nodes_first: int
    nodes_last: int
    nodes_most: int
    tainted: int = 0  # now
    target: int = 0  # now, where a provisioner sizes it


class SimulationTotals(msgspec.Struct, frozen=True):
    """All that adds up over the time."""

    gpu_ms_paid: int = 0
    gpu_ms: int = 0
    gpu_ms_used: int = 0
    gpu_ms_pending: int = 0
    micro_dollars: int = 0
    unpriced: bool = False  # a machine was paid for whose price nobody declared
    evictions: int = 0
    disrupted_gpus: int = 0  # of the pods that were evicted
    lost_pods: int = 0  # that were on machines that died
    finished_pods: int = 0
    pending_pods: int = 0  # at the end
    nodes: int = 0  # at the end
    gpus: int = 0  # of those
    nodes_bought: int = 0
    nodes_removed: int = 0
    mean_wait_seconds: int = 0
    late_wait_seconds: int = 0  # nineteen of twenty pods waited no longer
    actions: int = 0
    held_by_guards: int = 0  # the most at once
    cycles: int = 0
    pools: tuple[PoolSum, ...] = ()

    @property
    def utilization_percent(self) -> int:
        """Of the GPUs that were there, how many were in use."""
        return 100 * self.gpu_ms_used // self.gpu_ms if self.gpu_ms else 0


class Broken(msgspec.Struct, frozen=True):
    """A rule of safety that was broken, and by which event."""

    at: Instant
    event: str
    rule: str
    sentence: str


class ExpectationResult(msgspec.Struct, frozen=True):
    """An expectation, in words, and what it was held against."""

    text: str
    value: int
    is_met: bool
    sign: str = ""  # before a figure, where it has one

    @property
    def figure(self) -> str:
        """What was found, as people write it."""
        return f"{self.sign}{self.value:,}"


class RevisionChange(msgspec.Struct, frozen=True):
    """Policies that came into force."""

    at: Instant
    revision: str


class Happening(msgspec.Struct, frozen=True):
    """What went wrong, or somebody did: not by us."""

    at: Instant
    text: str


class Simulated(msgspec.Struct, frozen=True):
    """What came of one simulation."""

    name: str
    label: str
    seed: int
    start: Instant
    end: Instant
    sums: SimulationTotals
    steps: tuple[TimelineStep, ...]
    revisions: tuple[RevisionChange, ...]
    happenings: tuple[Happening, ...] = ()
    happenings_more: int = 0  # that are not told one by one
    broken: tuple[Broken, ...] = ()
    expectations: tuple[ExpectationResult, ...] = ()
    troubles: tuple[str, ...] = ()  # of cycles that came to nothing
    notices: tuple[str, ...] = ()
    description: str = ""

    @property
    def failed(self) -> bool:
        return bool(self.broken) or any(not each.is_met for each in self.expectations)


# --- The figures of a simulation, each with its name, what is better, and how it is written.

_HOUR_MS = 3_600_000
_MINUTE_MS = 60_000

Better = Literal["less", "more", ""]


class Figure(msgspec.Struct, frozen=True):
    """One line of a summary."""

    key: str  # in JSON
    heading: str
    better: Better
    value: Callable[[SimulationTotals], int]
    to_text: Callable[[int], str] = "{:,}".format


def _hours(gpu_ms: int) -> str:
    return f"{gpu_ms / _HOUR_MS:,.1f}"


def _minutes(gpu_ms: int) -> str:
    return f"{gpu_ms / _MINUTE_MS:,.1f}"


FIGURES: tuple[Figure, ...] = (
    Figure("gpu_hours_paid", "GPU-hours paid", "less", lambda sums: sums.gpu_ms_paid, _hours),
    Figure(
        "gpu_utilization",
        "GPU utilization",
        "more",
        lambda sums: per_mille(sums.gpu_ms_used, sums.gpu_ms),
        percent,
    ),
    Figure("pending_gpu_minutes", "pending GPU-minutes", "less", lambda sums: sums.gpu_ms_pending, _minutes),
    Figure("evictions", "evictions", "less", lambda sums: sums.evictions),
    Figure("disrupted_gpus", "GPUs disrupted", "less", lambda sums: sums.disrupted_gpus),
    Figure("lost_pods", "pods lost with machines", "less", lambda sums: sums.lost_pods),
    Figure("micro_dollars", "cost", "less", lambda sums: sums.micro_dollars, dollars),
    Figure("mean_wait_seconds", "mean wait for a node", "less", lambda sums: sums.mean_wait_seconds, span),
    Figure("late_wait_seconds", "wait of 19 in 20 pods", "less", lambda sums: sums.late_wait_seconds, span),
    Figure("finished_pods", "pods finished", "more", lambda sums: sums.finished_pods),
    Figure("pending_pods", "pods pending at the end", "less", lambda sums: sums.pending_pods),
    Figure("nodes_bought", "nodes bought", "", lambda sums: sums.nodes_bought),
    Figure("nodes_removed", "nodes removed", "", lambda sums: sums.nodes_removed),
    Figure("nodes", "nodes at the end", "", lambda sums: sums.nodes),
    Figure("gpus", "GPUs at the end", "", lambda sums: sums.gpus),
    Figure("actions", "writes of the controller", "", lambda sums: sums.actions),
    Figure("held_by_guards", "decisions held by guards", "", lambda sums: sums.held_by_guards),
)
# In these two sets of policies are compared first.
COMPARED = ("gpu_hours_paid", "gpu_utilization", "pending_gpu_minutes", "evictions")


def best(figure: Figure, sums: Sequence[SimulationTotals]) -> str:
    """How the best is written, where there is a better and a worse that differ as they are written."""
    values = [figure.value(each) for each in sums]
    if not figure.better or len({figure.to_text(each) for each in values}) < 2:
        return ""
    return figure.to_text(min(values) if figure.better == "less" else max(values))
