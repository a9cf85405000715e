"""The figures of a simulation, each with its name, what is better, and how it is written."""

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from reconciler.model.human_time import span
from reconciler.report.simulation.simulated import SimulationTotals
from reconciler.report.wording import dollars, per_mille, percent

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
