"""What `simulate -o json` prints: a summary and a timeline, for one simulation or for each of several."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec

from reconciler.model.instant import timestamp
from reconciler.report.json_schema import Time, Tool
from reconciler.report.simulation.simulated import PoolStep, PoolSum, Simulated, SimulationTotals, TimelineStep

# --- The JSON of simulations, as structs: what `simulate -o json` prints, and the one source of its schema.


class PoolSummary(msgspec.Struct, frozen=True):
    """A pool over all the time."""

    gpu_hours: Annotated[float, msgspec.Meta(description="GPUs of its nodes, times how long they were there.")]
    gpu_hours_used: float
    micro_dollars: int
    nodes_first: int
    nodes_last: int
    nodes_most: int


class Summary(msgspec.Struct, frozen=True):
    """All that adds up over the time."""

    gpu_hours_paid: Annotated[float, msgspec.Meta(description="From the purchase of each machine until it is gone.")]
    gpu_hours: Annotated[float, msgspec.Meta(description="GPUs of nodes, times how long they were there.")]
    gpu_hours_used: float
    gpu_utilization_percent: Annotated[float | None, msgspec.Meta(description="Null where there were no GPUs.")]
    pending_gpu_minutes: Annotated[float, msgspec.Meta(description="GPUs of pods without a node, times how long.")]
    micro_dollars: int
    unpriced: Annotated[bool, msgspec.Meta(description="A machine without a declared price is not in the money.")]
    evictions: int
    disrupted_gpus: Annotated[int, msgspec.Meta(description="GPUs of the pods that were evicted.")]
    lost_pods: Annotated[int, msgspec.Meta(description="Pods on machines that died.")]
    finished_pods: int
    pending_pods: Annotated[int, msgspec.Meta(description="At the end.")]
    mean_wait_seconds: Annotated[int, msgspec.Meta(description="For a node.")]
    late_wait_seconds: Annotated[int, msgspec.Meta(description="Nineteen of twenty pods waited no longer.")]
    nodes: Annotated[int, msgspec.Meta(description="At the end.")]
    gpus: Annotated[int, msgspec.Meta(description="At the end.")]
    nodes_bought: int
    nodes_removed: int
    actions: Annotated[int, msgspec.Meta(description="Writes of the controller that took effect.")]
    held_by_guards: Annotated[int, msgspec.Meta(description="Decisions, the most at once.")]
    cycles: int
    pools: Annotated[dict[str, PoolSummary], msgspec.Meta(description='By name; "" are nodes of no pool.')]


class ActionTold(msgspec.Struct, frozen=True):
    """A write of the controller that took effect."""

    time: Time
    verb: str
    subject: str
    reason: Annotated[str, msgspec.Meta(description="A code.")]


class Sized(msgspec.Struct, frozen=True):
    """The pool of a provisioner at one moment; its nodes without those that are being deleted."""

    current_size: int
    target_size: int
    tainted: Annotated[int, msgspec.Meta(description="Nodes that are about to leave by our hand.")]
    gpus_used: int
    gpus_total: int


class PoolTold(msgspec.Struct, frozen=True):
    """A pool at one moment; its nodes without those that are being deleted."""

    nodes: int
    busy_nodes: int
    tainted: Annotated[int, msgspec.Meta(description="Nodes that are about to leave by our hand.")]
    gpus_used: int
    gpus_total: int


class StepTold(msgspec.Struct, frozen=True):
    """How things stood at a moment, and what happened since the moment before."""

    time: Time
    actions: list[ActionTold]
    actions_left_out: Annotated[int, msgspec.Meta(description="Not listed: of a run the first 10,000 are.")]
    provisioners: dict[str, Sized]
    pools: Annotated[dict[str, PoolTold], msgspec.Meta(description='By name; "" are nodes of no pool.')]
    pending_pods: Annotated[int, msgspec.Meta(description="The most at once since the moment before.")]
    pending_gpus: Annotated[int, msgspec.Meta(description="The most at once since the moment before.")]
    longest_wait_seconds: Annotated[int, msgspec.Meta(description="Of the pods that waited since the moment before.")]
    micro_dollars_per_hour: int
    bought: int
    removed: int
    evicted: int
    lost: int
    finished: int


class RevisionTold(msgspec.Struct, frozen=True):
    """Policies that came into force."""

    time: Time
    revision: str


class HappeningTold(msgspec.Struct, frozen=True):
    """A fault, or what somebody else did."""

    time: Time
    told: str


class ExpectationTold(msgspec.Struct, frozen=True):
    """What was expected, in words, and the figure it was held against."""

    told: str
    found: int
    is_met: bool


class BrokenTold(msgspec.Struct, frozen=True):
    """A rule of safety that was broken, and by which event."""

    time: Time
    event: str
    rule: str
    sentence: str


class RunTold(msgspec.Struct, frozen=True):
    """What came of the scenario with one set of policies."""

    policies: Annotated[str, msgspec.Meta(description="Where --policies named them: by the end of their path.")]
    failed: Annotated[bool, msgspec.Meta(description="An expectation was not met, or a rule of safety broken.")]
    summary: Summary
    timeline: Annotated[list[StepTold], msgspec.Meta(description="At most some 480 steps, however long the time.")]
    revisions: list[RevisionTold]
    happenings: list[HappeningTold]
    happenings_left_out: Annotated[int, msgspec.Meta(description="Of many, those that are not listed.")]
    expectations: list[ExpectationTold]
    broken: list[BrokenTold]
    troubles: Annotated[list[str], msgspec.Meta(description="Of cycles that came to nothing.")]
    notices: list[str]


class SimulatedTold(RunTold, frozen=True):
    """What came of a scenario: with the first set of policies here, with each other one in `others`."""

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
