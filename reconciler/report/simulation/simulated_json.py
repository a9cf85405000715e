"""JSON of `simulate -o json`: a summary and a timeline for each simulation."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec

from reconciler.model.instant import timestamp
from reconciler.report.json_schema import Time, Tool
from reconciler.report.simulation.simulated import PoolStep, PoolSum, Simulated, SimulationTotals, TimelineStep

# --- Structs of the JSON that `simulate -o json` prints; the only source of its schema.


class PoolSummary(msgspec.Struct, frozen=True):
    """Totals of a pool."""

    gpu_hours: Annotated[float, msgspec.Meta(description="GPUs of its nodes, multiplied by time.")]
    gpu_hours_used: float
    micro_dollars: int
    nodes_first: int
    nodes_last: int
    nodes_most: int


class Summary(msgspec.Struct, frozen=True):
    """Totals of a simulation."""

    gpu_hours_paid: Annotated[float, msgspec.Meta(description="From the purchase of each machine until its deletion.")]
    gpu_hours: Annotated[float, msgspec.Meta(description="GPUs of nodes, multiplied by time.")]
    gpu_hours_used: float
    gpu_utilization_percent: Annotated[float | None, msgspec.Meta(description="Null if there were no GPUs.")]
    pending_gpu_minutes: Annotated[float, msgspec.Meta(description="GPUs of pods without a node, multiplied by time.")]
    micro_dollars: int
    unpriced: Annotated[
        bool, msgspec.Meta(description="True if machines without a declared price are excluded from the cost.")
    ]
    evictions: int
    disrupted_gpus: Annotated[int, msgspec.Meta(description="GPUs of evicted pods.")]
    lost_pods: Annotated[int, msgspec.Meta(description="Pods on machines that failed.")]
    finished_pods: int
    pending_pods: Annotated[int, msgspec.Meta(description="At the end.")]
    mean_wait_seconds: Annotated[int, msgspec.Meta(description="Mean wait of a pod for a node.")]
    late_wait_seconds: Annotated[int, msgspec.Meta(description="95 % of pods waited no longer.")]
    nodes: Annotated[int, msgspec.Meta(description="At the end.")]
    gpus: Annotated[int, msgspec.Meta(description="At the end.")]
    nodes_bought: int
    nodes_removed: int
    actions: Annotated[int, msgspec.Meta(description="Writes of the controller that took effect.")]
    held_by_guards: Annotated[int, msgspec.Meta(description="Maximum number of decisions at one time.")]
    cycles: int
    pools: Annotated[dict[str, PoolSummary], msgspec.Meta(description='By name; "" for nodes without a pool.')]


class ActionTold(msgspec.Struct, frozen=True):
    """A write of the controller that took effect."""

    time: Time
    verb: str
    subject: str
    reason: Annotated[str, msgspec.Meta(description="Code of the reason.")]


class Sized(msgspec.Struct, frozen=True):
    """State of the pool of a NodeProvisioner at one time; nodes that are being deleted are excluded."""

    current_size: int
    target_size: int
    tainted: Annotated[int, msgspec.Meta(description="Nodes that the controller is about to remove.")]
    gpus_used: int
    gpus_total: int


class PoolTold(msgspec.Struct, frozen=True):
    """State of a pool at one time; nodes that are being deleted are excluded."""

    nodes: int
    busy_nodes: int
    tainted: Annotated[int, msgspec.Meta(description="Nodes that the controller is about to remove.")]
    gpus_used: int
    gpus_total: int


class StepTold(msgspec.Struct, frozen=True):
    """State at one time, and events since the previous step."""

    time: Time
    actions: list[ActionTold]
    actions_left_out: Annotated[
        int, msgspec.Meta(description="Number of actions not listed: a run lists the first 10,000.")
    ]
    provisioners: dict[str, Sized]
    pools: Annotated[dict[str, PoolTold], msgspec.Meta(description='By name; "" for nodes without a pool.')]
    pending_pods: Annotated[int, msgspec.Meta(description="Maximum since the previous step.")]
    pending_gpus: Annotated[int, msgspec.Meta(description="Maximum since the previous step.")]
    longest_wait_seconds: Annotated[int, msgspec.Meta(description="Of the pods that waited since the previous step.")]
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

    policies: Annotated[str, msgspec.Meta(description="Last part of the path given to --policies.")]
    failed: Annotated[bool, msgspec.Meta(description="An expectation was not met, or a safety rule was broken.")]
    summary: Summary
    timeline: Annotated[list[StepTold], msgspec.Meta(description="At most about 480 steps.")]
    revisions: list[RevisionTold]
    happenings: list[HappeningTold]
    happenings_left_out: Annotated[int, msgspec.Meta(description="Number of happenings not listed.")]
    expectations: list[ExpectationTold]
    broken: list[BrokenTold]
    troubles: Annotated[list[str], msgspec.Meta(description="Errors of failed cycles.")]
    notices: list[str]


class SimulatedTold(RunTold, frozen=True):
    """Result of a scenario: the first set of policies here, the others in `others`."""

    format_version: Literal[1]
    tool: Tool
    name: str
    seed: int
    start: Time
    end: Time
    others: Annotated[list[RunTold], msgspec.Meta(description="In the order of --policies.")]


_HOUR_MS = 3_600_000
_MINUTE_MS = 60_000


def payload(runs: Sequence[Simulated], tool_version: str) -> dict[str, Any]:
    """The payload, as described by schemas/simulated.json."""
    first, *others = runs
    simulated_told = SimulatedTold(
        **msgspec.structs.asdict(_run(first)),
        format_version=1,
        tool=Tool("reconciler", tool_version),
        name=first.name,
        seed=first.seed,
        start=timestamp(first.start),
        end=timestamp(first.end),
        others=[_run(each) for each in others],
    )
    plain: dict[str, Any] = msgspec.to_builtins(simulated_told)
    return plain


def _run(run: Simulated) -> RunTold:
    return RunTold(
        policies=run.label,
        failed=run.failed,
        summary=summary_json(run.sums),
        timeline=[_step(each) for each in run.steps],
        revisions=[RevisionTold(timestamp(each.at), each.revision) for each in run.revisions],
        happenings=[HappeningTold(timestamp(each.at), each.text) for each in run.happenings],
        happenings_left_out=run.happenings_more,
        expectations=[ExpectationTold(each.text, each.value, each.is_met) for each in run.expectations],
        broken=[BrokenTold(timestamp(each.at), each.event, each.rule, each.sentence) for each in run.broken],
        troubles=list(run.troubles),
        notices=list(run.notices),
    )


def summary_json(sums: SimulationTotals) -> Summary:
    """The figures, in units for people."""
    return Summary(
        gpu_hours_paid=round(sums.gpu_ms_paid / _HOUR_MS, 3),
        gpu_hours=round(sums.gpu_ms / _HOUR_MS, 3),
        gpu_hours_used=round(sums.gpu_ms_used / _HOUR_MS, 3),
        gpu_utilization_percent=round(100 * sums.gpu_ms_used / sums.gpu_ms, 3) if sums.gpu_ms else None,
        pending_gpu_minutes=round(sums.gpu_ms_pending / _MINUTE_MS, 3),
        micro_dollars=sums.micro_dollars,
        unpriced=sums.unpriced,
        evictions=sums.evictions,
        disrupted_gpus=sums.disrupted_gpus,
        lost_pods=sums.lost_pods,
        finished_pods=sums.finished_pods,
        pending_pods=sums.pending_pods,
        mean_wait_seconds=sums.mean_wait_seconds,
        late_wait_seconds=sums.late_wait_seconds,
        nodes=sums.nodes,
        gpus=sums.gpus,
        nodes_bought=sums.nodes_bought,
        nodes_removed=sums.nodes_removed,
        actions=sums.actions,
        held_by_guards=sums.held_by_guards,
        cycles=sums.cycles,
        pools={each.pool: _pool_sum(each) for each in sums.pools},
    )


def _pool_sum(pool: PoolSum) -> PoolSummary:
    return PoolSummary(
        gpu_hours=round(pool.gpu_ms / _HOUR_MS, 3),
        gpu_hours_used=round(pool.gpu_ms_used / _HOUR_MS, 3),
        micro_dollars=pool.micro_dollars,
        nodes_first=pool.nodes_first,
        nodes_last=pool.nodes_last,
        nodes_most=pool.nodes_most,
    )


def _step(step: TimelineStep) -> StepTold:
    return StepTold(
        time=timestamp(step.at),
        actions=[ActionTold(timestamp(each.at), each.verb, each.subject, each.reason) for each in step.did],
        actions_left_out=step.did_more,
        provisioners={each.provisioner: _sized(each) for each in step.pools if each.provisioner},
        pools={each.pool: _pool(each) for each in step.pools},
        pending_pods=step.pending_pods,
        pending_gpus=step.pending_gpus,
        longest_wait_seconds=step.longest_wait_seconds,
        micro_dollars_per_hour=step.micro_dollars_per_hour,
        bought=step.bought,
        removed=step.removed,
        evicted=step.evicted,
        lost=step.lost,
        finished=step.finished,
    )


def _sized(pool: PoolStep) -> Sized:
    return Sized(pool.nodes, pool.target or 0, pool.tainted, pool.gpus_used, pool.gpus)


def _pool(pool: PoolStep) -> PoolTold:
    return PoolTold(pool.nodes, pool.busy_nodes, pool.tainted, pool.gpus_used, pool.gpus)
