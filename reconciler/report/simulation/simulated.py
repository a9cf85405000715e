"""Simulated: result of one simulation."""

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from reconciler.model.instant import Instant, span
from reconciler.report.wording import dollars, per_mille, percent


class PoolStep(msgspec.Struct, frozen=True, gc=False):
    """State of a pool at one time; nodes that are being deleted are excluded."""

    pool: str
    nodes: int
    busy_nodes: int
    gpus: int
    gpus_used: int
    tainted: int  # nodes that the controller is about to remove
    target: int | None = None  # with a NodeProvisioner
    provisioner: str = ""


class Did(msgspec.Struct, frozen=True, gc=False):
    """One write of the controller that took effect."""

    at: Instant
    verb: str
    subject: str
    reason: str


class TimelineStep(msgspec.Struct, frozen=True, gc=False):
    """State at one time, and events since the previous step."""

    at: Instant
    pools: tuple[PoolStep, ...]
    pending_pods: int  # maximum since the previous step
    pending_gpus: int  # likewise
    longest_wait_seconds: int  # of the pods that waited since the previous step, so far
    micro_dollars_per_hour: int
    bought: int = 0
    removed: int = 0
    evicted: int = 0
    lost: int = 0
    finished: int = 0
    did: tuple[Did, ...] = ()
    did_more: int = 0  # writes that are not listed


class PoolSum(msgspec.Struct, frozen=True):
    pool: str
    gpu_ms: int  # GPUs of existing nodes, multiplied by time
    gpu_ms_used: int
    micro_dollars: int
    nodes_first: int
    nodes_last: int
    nodes_most: int
    tainted: int = 0  # now
    target: int = 0  # now, with a NodeProvisioner


class SimulationTotals(msgspec.Struct, frozen=True):
    gpu_ms_paid: int = 0
    gpu_ms: int = 0
    gpu_ms_used: int = 0
    gpu_ms_pending: int = 0
    micro_dollars: int = 0
    unpriced: bool = False  # a machine without a declared price was paid for
    evictions: int = 0
    disrupted_gpus: int = 0  # of evicted pods
    lost_pods: int = 0  # on machines that failed
    finished_pods: int = 0
    pending_pods: int = 0  # at the end
    nodes: int = 0  # at the end
    gpus: int = 0  # of those nodes
    nodes_bought: int = 0
    nodes_removed: int = 0
    mean_wait_seconds: int = 0
    late_wait_seconds: int = 0  # 95 % of pods waited no longer
    actions: int = 0
    held_by_guards: int = 0  # maximum at one time
    cycles: int = 0
    pools: tuple[PoolSum, ...] = ()

    @property
    def utilization_percent(self) -> int:
        """Share of existing GPUs that were in use."""
        return 100 * self.gpu_ms_used // self.gpu_ms if self.gpu_ms else 0


class Broken(msgspec.Struct, frozen=True):
    """A broken safety rule, and the event that broke it."""

    at: Instant
    event: str
    rule: str
    sentence: str


class ExpectationResult(msgspec.Struct, frozen=True):
    """An expectation as text, and the value it was compared with."""

    text: str
    value: int
    is_met: bool
    sign: str = ""  # before a figure, if any

    @property
    def figure(self) -> str:
        """The value found, formatted."""
        return f"{self.sign}{self.value:,}"


class RevisionChange(msgspec.Struct, frozen=True):
    """A change of the policies in force."""

    at: Instant
    revision: str


class Happening(msgspec.Struct, frozen=True):
    """A fault, or an action of somebody else."""

    at: Instant
    text: str


class Simulated(msgspec.Struct, frozen=True):
    name: str
    label: str
    seed: int
    start: Instant
    end: Instant
    sums: SimulationTotals
    steps: tuple[TimelineStep, ...]
    revisions: tuple[RevisionChange, ...]
    happenings: tuple[Happening, ...] = ()
    happenings_more: int = 0  # happenings that are not listed
    broken: tuple[Broken, ...] = ()
    expectations: tuple[ExpectationResult, ...] = ()
    troubles: tuple[str, ...] = ()  # of failed cycles
    notices: tuple[str, ...] = ()
    description: str = ""

    @property
    def failed(self) -> bool:
        return bool(self.broken) or any(not each.is_met for each in self.expectations)


# --- Figures of a simulation: names, directions, and formats.

_HOUR_MS = 3_600_000
_MINUTE_MS = 60_000

Better = Literal["less", "more", ""]


class Figure(msgspec.Struct, frozen=True):
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
        "gpu_utilization", "GPU utilization", "more", lambda sums: per_mille(sums.gpu_ms_used, sums.gpu_ms), percent
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
# Comparisons of policies begin with these two.
COMPARED = ("gpu_hours_paid", "gpu_utilization", "pending_gpu_minutes", "evictions")


def best(figure: Figure, sums: Sequence[SimulationTotals]) -> str:
    """The formatted best value, if the figure has a direction and the formatted values differ."""
    values = [figure.value(each) for each in sums]
    if not figure.better or len({figure.to_text(each) for each in values}) < 2:
        return ""
    return figure.to_text(min(values) if figure.better == "less" else max(values))
