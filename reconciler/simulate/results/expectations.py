"""What was expected, held against the figures: at the end, or at the moment that it names."""

from collections.abc import Callable

from reconciler.model.instant import Instant
from reconciler.report.simulation.simulated import ExpectationResult, PoolSum, SimulationTotals
from reconciler.simulate.scenario.expectation import Expectation, Measure

_HOUR_MS = 3_600_000
_MINUTE_MS = 60_000
_DOLLAR = 1_000_000

_WORDS: dict[Measure, str] = {
    "evictions": "evictions",
    "disruptedGPUs": "GPUs disrupted by evictions",
    "lostPods": "pods lost with their machines",
    "pendingGPUMinutes": "pending GPU-minutes",
    "gpuUtilizationPercent": "percent of GPUs in use",
    "gpuHoursPaid": "GPU-hours paid",
    "dollars": "cost",
    "nodesBought": "nodes bought",
    "nodesRemoved": "nodes removed",
    "finishedPods": "pods finished",
    "actions": "writes of the controller",
    "nodes": "nodes",
    "targetNodes": "nodes that provisioners want",
    "taintedNodes": "nodes that are marked",
    "pendingPods": "pods pending",
    "heldByGuards": "decisions held by guards",
}
_OF_ALL: dict[Measure, Callable[[SimulationTotals], int]] = {
    "evictions": lambda sums: sums.evictions,
    "disruptedGPUs": lambda sums: sums.disrupted_gpus,
    "lostPods": lambda sums: sums.lost_pods,
    "pendingGPUMinutes": lambda sums: sums.gpu_ms_pending // _MINUTE_MS,
    "gpuUtilizationPercent": lambda sums: sums.utilization_percent,
    "gpuHoursPaid": lambda sums: sums.gpu_ms_paid // _HOUR_MS,
    "dollars": lambda sums: sums.micro_dollars // _DOLLAR,
    "nodesBought": lambda sums: sums.nodes_bought,
    "nodesRemoved": lambda sums: sums.nodes_removed,
    "finishedPods": lambda sums: sums.finished_pods,
    "actions": lambda sums: sums.actions,
    "nodes": lambda sums: sums.nodes,
    "targetNodes": lambda sums: sum(each.target for each in sums.pools),
    "taintedNodes": lambda sums: sum(each.tainted for each in sums.pools),
    "pendingPods": lambda sums: sums.pending_pods,
    "heldByGuards": lambda sums: sums.held_by_guards,
}
_OF_A_POOL: dict[Measure, Callable[[PoolSum], int]] = {
    "nodes": lambda pool: pool.nodes_last,
    "targetNodes": lambda pool: pool.target,
    "taintedNodes": lambda pool: pool.tainted,
    "gpuUtilizationPercent": lambda pool: 100 * pool.gpu_ms_used // pool.gpu_ms if pool.gpu_ms else 0,
    "gpuHoursPaid": lambda pool: pool.gpu_ms // _HOUR_MS,
    "dollars": lambda pool: pool.micro_dollars // _DOLLAR,
}


def judged(expectation: Expectation, sums: SimulationTotals) -> ExpectationResult:
    """With the figures as they were at its moment."""
    found = _figure(expectation, sums)
    least, most = expectation.at_least, expectation.at_most
    is_met = (least is None or found >= least) and (most is None or found <= most)
    return ExpectationResult(_expectation_text(expectation), found, is_met, _sign(expectation))


def moment_of(expectation: Expectation, start: Instant, end: Instant) -> Instant:
    return end if expectation.at is None else Instant(start + expectation.at.milliseconds)


def _figure(expectation: Expectation, sums: SimulationTotals) -> int:
    if not expectation.pool:
        return _OF_ALL[expectation.measure](sums)
    pool = next((each for each in sums.pools if each.pool == expectation.pool), None)
    return _OF_A_POOL[expectation.measure](pool) if pool else 0


def _expectation_text(expectation: Expectation) -> str:
    words = _WORDS[expectation.measure]
    if expectation.pool:
        words += f" of {expectation.pool}"
    if expectation.at is not None:
        words += f" after {expectation.at}"
    least, most = (f"{_sign(expectation)}{each or 0:,}" for each in (expectation.at_least, expectation.at_most))
    if expectation.at_most is None:
        return f"{words}: at least {least}"
    if expectation.at_least is None:
        return f"{words}: at most {most}"
    return f"{words}: {least} to {most}" if least != most else f"{words}: exactly {least}"


def _sign(expectation: Expectation) -> str:
    return "$" if expectation.measure == "dollars" else ""
