"""JSON of `simulate -o json`: a summary and a timeline for each simulation."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec

from reconciler.model.instant import timestamp
from reconciler.report.json_schema import Time, Tool, says, told
from reconciler.report.simulation.simulated import PoolStep, Simulated, SimulationTotals, TimelineStep

# --- Structs of the JSON that `simulate -o json` prints; the only source of its schema.


class PoolSummary(msgspec.Struct, frozen=True):
    """Totals of a pool."""

    gpu_hours: Annotated[float, says("GPUs of its nodes, multiplied by time.")]
    gpu_hours_used: float
    micro_dollars: int
    nodes_first: int
    nodes_last: int
    nodes_most: int


class Summary(msgspec.Struct, frozen=True):
    """Totals of a simulation."""

    gpu_hours_paid: Annotated[float, says("From the purchase of each machine until its deletion.")]
    gpu_hours: Annotated[float, says("GPUs of nodes, multiplied by time.")]
    gpu_hours_used: float
    gpu_utilization_percent: Annotated[float | None, says("Null if there were no GPUs.")]
    pending_gpu_minutes: Annotated[float, says("GPUs of pods without a node, multiplied by time.")]
    micro_dollars: int
    unpriced: Annotated[bool, says("True if machines without a declared price are excluded from the cost.")]
    evictions: int
    disrupted_gpus: Annotated[int, says("GPUs of evicted pods.")]
    lost_pods: Annotated[int, says("Pods on machines that failed.")]
    finished_pods: int
    pending_pods: Annotated[int, says("At the end.")]
    mean_wait_seconds: Annotated[int, says("Mean wait of a pod for a node.")]
    late_wait_seconds: Annotated[int, says("95 % of pods waited no longer.")]
    nodes: Annotated[int, says("At the end.")]
    gpus: Annotated[int, says("At the end.")]
    nodes_bought: int
    nodes_removed: int
    actions: Annotated[int, says("Writes of the controller that took effect.")]
    held_by_guards: Annotated[int, says("Maximum number of decisions at one time.")]
    cycles: int
    pools: Annotated[dict[str, PoolSummary], says('By name; "" for nodes without a pool.')]


class ActionTold(msgspec.Struct, frozen=True):
    """A write of the controller that took effect."""

    time: Time
    verb: str
    subject: str
    reason: Annotated[str, says("Code of the reason.")]


class Sized(msgspec.Struct, frozen=True):
    """State of the pool of a NodeProvisioner at one time; nodes that are being deleted are excluded."""

    current_size: int
    target_size: int
    tainted: Annotated[int, says("Nodes that the controller is about to remove.")]
    gpus_used: int
    gpus_total: int


class PoolTold(msgspec.Struct, frozen=True):
    """State of a pool at one time; nodes that are being deleted are excluded."""

    nodes: int
    busy_nodes: int
    tainted: Annotated[int, says("Nodes that the controller is about to remove.")]
    gpus_used: int
    gpus_total: int


class StepTold(msgspec.Struct, frozen=True):
    """State at one time, and events since the previous step."""

    time: Time
    actions: list[ActionTold]
    actions_left_out: Annotated[int, says("Number of actions not listed: a run lists the first 10,000.")]
    provisioners: dict[str, Sized]
    pools: Annotated[dict[str, PoolTold], says('By name; "" for nodes without a pool.')]
    pending_pods: Annotated[int, says("Maximum since the previous step.")]
    pending_gpus: Annotated[int, says("Maximum since the previous step.")]
    longest_wait_seconds: Annotated[int, says("Of the pods that waited since the previous step.")]
    micro_dollars_per_hour: int
    bought: int
    removed: int
    evicted: int
    lost: int
    finished: int


class RevisionTold(msgspec.Struct, frozen=True):
    """A change of the policies in force."""

    time: Time
    revision: str


class HappeningTold(msgspec.Struct, frozen=True):
    """A fault, or an action of somebody else."""

    time: Time
    told: str


class ExpectationTold(msgspec.Struct, frozen=True):
    """An expectation as text, and the value it was compared with."""

    told: str
    found: int
    is_met: bool


class BrokenTold(msgspec.Struct, frozen=True):
    """A broken safety rule, and the event that broke it."""

    time: Time
    event: str
    rule: str
    sentence: str


class RunTold(msgspec.Struct, frozen=True):
    """Result of the scenario with one set of policies."""

    policies: Annotated[str, says("Last part of the path given to --policies.")]
    failed: Annotated[bool, says("An expectation was not met, or a safety rule was broken.")]
    summary: Summary
    timeline: Annotated[list[StepTold], says("At most about 480 steps.")]
    revisions: list[RevisionTold]
    happenings: list[HappeningTold]
    happenings_left_out: Annotated[int, says("Number of happenings not listed.")]
    expectations: list[ExpectationTold]
    broken: list[BrokenTold]
    troubles: Annotated[list[str], says("Errors of failed cycles.")]
    notices: list[str]


class SimulatedTold(RunTold, frozen=True):
    """Result of a scenario: the first set of policies here, the others in `others`."""

    format_version: Literal[1]
    tool: Tool
    name: str
    seed: int
    start: Time
    end: Time
    others: Annotated[list[RunTold], says("In the order of --policies.")]


_HOUR_MS = 3_600_000
_MINUTE_MS = 60_000


def payload(runs: Sequence[Simulated], tool_version: str) -> dict[str, Any]:
    """The payload, as described by schemas/simulated.json."""
    first, *others = runs
    simulated_told = told(
        SimulatedTold,
        first,
        **msgspec.structs.asdict(_run(first)),
        format_version=1,
        tool=Tool("reconciler", tool_version),
        start=timestamp(first.start),
        end=timestamp(first.end),
        others=[_run(each) for each in others],
    )
    plain: dict[str, Any] = msgspec.to_builtins(simulated_told)
    return plain


def _run(run: Simulated) -> RunTold:
    return told(
        RunTold,
        run,
        policies=run.label,
        summary=summary_json(run.sums),
        timeline=[_step(each) for each in run.steps],
        revisions=[RevisionTold(timestamp(each.at), each.revision) for each in run.revisions],
        happenings=[HappeningTold(timestamp(each.at), each.text) for each in run.happenings],
        happenings_left_out=run.happenings_more,
        expectations=[ExpectationTold(each.text, each.value, each.is_met) for each in run.expectations],
        broken=[told(BrokenTold, each, time=timestamp(each.at)) for each in run.broken],
    )


def _hours(ms: int) -> float:
    return round(ms / _HOUR_MS, 3)


def summary_json(sums: SimulationTotals) -> Summary:
    """The figures, in units for people."""
    return told(
        Summary,
        sums,
        gpu_hours_paid=_hours(sums.gpu_ms_paid),
        gpu_hours=_hours(sums.gpu_ms),
        gpu_hours_used=_hours(sums.gpu_ms_used),
        gpu_utilization_percent=round(100 * sums.gpu_ms_used / sums.gpu_ms, 3) if sums.gpu_ms else None,
        pending_gpu_minutes=round(sums.gpu_ms_pending / _MINUTE_MS, 3),
        pools={
            each.pool: told(PoolSummary, each, gpu_hours=_hours(each.gpu_ms), gpu_hours_used=_hours(each.gpu_ms_used))
            for each in sums.pools
        },
    )


def _step(step: TimelineStep) -> StepTold:
    return told(
        StepTold,
        step,
        time=timestamp(step.at),
        actions=[told(ActionTold, each, time=timestamp(each.at)) for each in step.did],
        actions_left_out=step.did_more,
        provisioners={each.provisioner: _sized(each) for each in step.pools if each.provisioner},
        pools={each.pool: told(PoolTold, each, gpus_total=each.gpus) for each in step.pools},
    )


def _sized(pool: PoolStep) -> Sized:
    return Sized(pool.nodes, pool.target or 0, pool.tainted, pool.gpus_used, pool.gpus)
