"""What `simulate -o json` prints: a summary and a timeline, for one simulation or for each of several."""

from collections.abc import Sequence
from typing import Any

import msgspec

from reconciler.model.instant import timestamp
from reconciler.report.schema.json_parts import Tool
from reconciler.report.simulation.simulated import PoolStep, PoolSum, Simulated, SimulationTotals, TimelineStep
from reconciler.report.simulation.simulated_shape import (
    ActionTold,
    BrokenTold,
    ExpectationTold,
    HappeningTold,
    PoolSummary,
    PoolTold,
    RevisionTold,
    RunTold,
    SimulatedTold,
    Sized,
    StepTold,
    Summary,
)

_HOUR_MS = 3_600_000
_MINUTE_MS = 60_000


def payload(runs: Sequence[Simulated], tool_version: str) -> dict[str, Any]:
    """As schemas/simulated.json says."""
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
    """The figures, in the units that people use."""
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
