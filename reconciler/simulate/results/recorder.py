"""Records the results of a simulation; a Recorder owns the controller's actions and the expectations."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import msgspec

from reconciler.model.desired import Desired
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Hold
from reconciler.model.plan.evaluation import ScalingReport
from reconciler.model.plan.inputs import CycleResult
from reconciler.report.simulation.simulated import (
    Broken,
    Did,
    ExpectationResult,
    Happening,
    PoolSum,
    RevisionChange,
    Simulated,
    SimulationTotals,
    TimelineStep,
)
from reconciler.simulate.actors.karpenter.cloud import MarketOffering
from reconciler.simulate.results.meter import RunMeter, Timeline, step_ms
from reconciler.simulate.results.totals import PoolTotalsTracker
from reconciler.simulate.runner.play import Play
from reconciler.simulate.scenario.spec import Expectation, Measure
from reconciler.simulate.stage import Stage

MOST_TROUBLES = 20
MOST_HAPPENINGS = 200


class Recorder:
    """A Publisher and an Actor; created after the initial state is complete."""

    def __init__(
        self,
        stage: Stage,
        play: Play,
        market: tuple[MarketOffering, ...],
        look: Callable[[TimelineStep], None] | None = None,
    ) -> None:
        self._stage = stage
        self._play = play
        self._desired = play.first
        self._meter = RunMeter(stage, play.first, market, play.priced_by)
        self._timeline = Timeline(self._meter, look)
        self._revisions = [RevisionChange(play.start, play.first.revision)]
        self._happenings: list[Happening] = []
        self._happenings_more = 0
        self._judged: dict[int, ExpectationResult] = {}
        self._troubles: dict[str, None] = {}
        self._actions = self._held = self._cycles = 0

    @property
    def where(self) -> PoolTotalsTracker:
        return self._meter.where

    def start(self, stage: Stage) -> None:
        length = step_ms(self._play.end - self._play.start)
        stage.engine.at(stage.now, "look", lambda: self._look(length))
        for number, each in enumerate(self._play.scenario.expect):
            if each.at is not None:
                when = Instant(self._play.start + each.at.milliseconds)
                stage.engine.at(when, "judge", partial(self._judge, number, each))

    def follow(self, desired: Desired) -> None:
        """Sets the policies in force; equal policies are ignored."""
        before, self._desired = self._desired, desired
        self._meter.follow(desired)
        if _said(before) != _said(desired):
            self._revisions.append(RevisionChange(self._stage.now, desired.revision))

    def happen(self, at: Instant, text: str) -> None:
        if len(self._happenings) < MOST_HAPPENINGS:
            self._happenings.append(Happening(at, text))
        else:
            self._happenings_more += 1

    def publish(self, cycled: CycleResult) -> None:
        self._cycles += 1
        if cycled.trouble and len(self._troubles) < MOST_TROUBLES:
            self._troubles[cycled.trouble] = None
        plan = cycled.plan
        if plan is None:
            return
        self._timeline.sizes = plan.report(ScalingReport).sizes
        self._held = max(self._held, sum(each.held for each in plan.guarded))
        if not cycled.outcomes:
            return
        decisions = {each.subject: each for each in plan.decisions if not isinstance(each.act, Hold)}
        for outcome in cycled.outcomes:
            if outcome.result == "done":
                self._actions += 1
                decision = decisions.get(outcome.subject)
                why = decision.reason.code if decision else ""
                self._timeline.note(Did(cycled.at, outcome.verb, outcome.subject.title, why))

    def simulated(self, broken: tuple[Broken, ...], notices: tuple[str, ...] = ()) -> Simulated:
        play, sums = self._play, self._sums()
        if not self._timeline.steps or self._timeline.steps[-1].at < self._stage.now:
            self._timeline.step(self._stage.now, self._desired)
        expect = play.scenario.expect
        return Simulated(
            name=play.name,
            label=play.label,
            seed=play.seed,
            start=play.start,
            end=self._stage.now,
            sums=sums,
            steps=tuple(self._timeline.steps),
            revisions=tuple(self._revisions),
            happenings=tuple(self._happenings),
            happenings_more=self._happenings_more,
            broken=broken,
            expectations=tuple(self._judged.get(number) or judged(each, sums) for number, each in enumerate(expect)),
            troubles=tuple(self._troubles),
            notices=notices,
            description=play.scenario.description,
        )

    def _sums(self) -> SimulationTotals:
        sums = self._meter.sums()
        targets = {each.pool: each.target for each in self._timeline.sizes}
        return msgspec.structs.replace(
            sums,
            actions=self._actions,
            held_by_guards=self._held,
            cycles=self._cycles,
            pools=tuple(msgspec.structs.replace(each, target=targets.get(each.pool, 0)) for each in sums.pools),
        )

    def _look(self, length_ms: int) -> None:
        self._timeline.step(self._stage.now, self._desired)
        self._stage.engine.after(length_ms, "look", lambda: self._look(length_ms))

    def _judge(self, number: int, expectation: Expectation) -> None:
        self._judged[number] = judged(expectation, self._sums())


def _said(desired: Desired) -> tuple[object, ...]:
    """All content of policies without source positions."""
    declared = tuple((each.kind, each.name, each.spec) for each in desired.declared)
    return (declared, tuple((each.kind, each.namespace, each.name, each.body) for each in desired.manifests))


# --- Evaluation of expectations: at the end, or at their time.

_HOUR_MS = 3_600_000
_MINUTE_MS = 60_000
_DOLLAR = 1_000_000


class _Figure(NamedTuple):
    """A measure: its words, and its value for the whole cluster and for a pool, if there is one."""

    words: str
    of_all: Callable[[SimulationTotals], int]
    of_pool: Callable[[PoolSum], int] = lambda _: 0


_FIGURES: dict[Measure, _Figure] = {
    "evictions": _Figure("evictions", lambda sums: sums.evictions),
    "disruptedGPUs": _Figure("GPUs disrupted by evictions", lambda sums: sums.disrupted_gpus),
    "lostPods": _Figure("pods lost with their machines", lambda sums: sums.lost_pods),
    "pendingGPUMinutes": _Figure("pending GPU-minutes", lambda sums: sums.gpu_ms_pending // _MINUTE_MS),
    "gpuUtilizationPercent": _Figure(
        "percent of GPUs in use",
        lambda sums: sums.utilization_percent,
        lambda pool: 100 * pool.gpu_ms_used // pool.gpu_ms if pool.gpu_ms else 0,
    ),
    "gpuHoursPaid": _Figure(
        "GPU-hours paid", lambda sums: sums.gpu_ms_paid // _HOUR_MS, lambda pool: pool.gpu_ms // _HOUR_MS
    ),
    "dollars": _Figure("cost", lambda sums: sums.micro_dollars // _DOLLAR, lambda pool: pool.micro_dollars // _DOLLAR),
    "nodesBought": _Figure("nodes bought", lambda sums: sums.nodes_bought),
    "nodesRemoved": _Figure("nodes removed", lambda sums: sums.nodes_removed),
    "finishedPods": _Figure("pods finished", lambda sums: sums.finished_pods),
    "actions": _Figure("writes of the controller", lambda sums: sums.actions),
    "nodes": _Figure("nodes", lambda sums: sums.nodes, lambda pool: pool.nodes_last),
    "targetNodes": _Figure(
        "target nodes of provisioners", lambda sums: sum(each.target for each in sums.pools), lambda pool: pool.target
    ),
    "taintedNodes": _Figure(
        "nodes tainted for deletion", lambda sums: sum(each.tainted for each in sums.pools), lambda pool: pool.tainted
    ),
    "pendingPods": _Figure("pods pending", lambda sums: sums.pending_pods),
    "heldByGuards": _Figure("decisions held by guards", lambda sums: sums.held_by_guards),
}


def judged(expectation: Expectation, sums: SimulationTotals) -> ExpectationResult:
    """The expectation with the values at its time."""
    found = _figure(expectation, sums)
    least, most = expectation.at_least, expectation.at_most
    is_met = (least is None or found >= least) and (most is None or found <= most)
    return ExpectationResult(_expectation_text(expectation), found, is_met, _sign(expectation))


def _figure(expectation: Expectation, sums: SimulationTotals) -> int:
    figure = _FIGURES[expectation.measure]
    if not expectation.pool:
        return figure.of_all(sums)
    return next((figure.of_pool(each) for each in sums.pools if each.pool == expectation.pool), 0)


def _expectation_text(expectation: Expectation) -> str:
    words = _FIGURES[expectation.measure].words
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
