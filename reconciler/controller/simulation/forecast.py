"""What a plan would come to over the next hours: the same engine, from the cluster as it was seen.

The load of the present goes on: what runs keeps running, and what is lost of it is made anew by whatever made it.
"""

from collections.abc import Callable

import msgspec

from reconciler.controller.dry_run import DryRun
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant, timestamp
from reconciler.model.quantity import Duration
from reconciler.plan.files.planning_result import PlanningResult
from reconciler.report.simulation.forecast import APPROVED, WITH, WITHOUT, Forecast
from reconciler.simulate.runner.play import Play, Revised
from reconciler.simulate.runner.run import RunOptions, run
from reconciler.simulate.scenario.revision import ScenarioRevision
from reconciler.simulate.scenario.spec import Scenario

_SHORT_MS = 6 * 3_600_000
_LONGER_CYCLES = Duration(30_000)  # days are long enough that a look each second would tell no more

Tell = Callable[[float], None]


def forecast(planned: DryRun, head: PlanningResult, ahead: Duration, tell: Tell) -> Forecast:
    """Raises NoCapacity."""
    base = planned.base
    policies = (head.inputs.desired, base.inputs.desired) if base is not None else ()
    before = run(_play(WITHOUT, base, ahead, policies), _watched(tell, 0)) if base is not None else None
    play = _play(WITH if base is not None else "", head, ahead, policies)
    after = run(play, _watched(tell, 1))
    if not after.sums.held_by_guards:
        return Forecast(after, before)
    desired = msgspec.structs.replace(play.first, guards=())
    unheld = msgspec.structs.replace(play, label=APPROVED, revisions=(Revised(0, desired),))
    labelled = msgspec.structs.replace(after, label=WITH)
    return Forecast(labelled, before, run(unheld, _watched(tell, 2)))


def _watched(tell: Tell, number: int) -> RunOptions:
    return RunOptions(tell=lambda part: tell((number + part) / 3))


def _play(label: str, scene: PlanningResult, ahead: Duration, priced_by: tuple[Desired, ...]) -> Play:
    inputs = scene.inputs
    start = Instant(inputs.now - inputs.now % 1_000)
    scenario = Scenario(
        start=timestamp(start),
        duration=ahead,
        policies=[ScenarioRevision(revision=inputs.desired.revision)],
        cycle_every=Duration(1_000) if ahead.milliseconds <= _SHORT_MS else _LONGER_CYCLES,
    )
    revised = (Revised(0, inputs.desired),)
    return Play(
        "forecast", scenario, revised, 1, label, observed=inputs.observed, memory=inputs.memory, priced_by=priced_by
    )
