"""The demo's story, played on an imagined cluster: by the real loop, with the policies of a revision."""

from collections.abc import Callable

import msgspec

from reconciler.controller.demo.recording import Witness
from reconciler.controller.demo.revisions import DemoRevision
from reconciler.loop import decide
from reconciler.model.plan.inputs import Inputs
from reconciler.model.quantity import Duration
from reconciler.plan.files.planning_result import PlanningResult
from reconciler.policy.changes import changes
from reconciler.report.plans.build import Compared
from reconciler.report.simulation.simulated import Simulated, TimelineStep
from reconciler.simulate.results.timeline import step_ms
from reconciler.simulate.runner.play import Play, Revised
from reconciler.simulate.runner.run import RunOptions, run
from reconciler.simulate.scenario.reading import read_scenario
from reconciler.simulate.scenario.revision import ScenarioRevision as Folder
from reconciler.simulate.scenario.spec import Scenario
from reconciler.simulate.scenario.writing import scenario_text
from reconciler.sources.defaults import demo_scenario

_AT_ONCE = Duration(1)


def cluster_before(main: DemoRevision) -> Inputs:
    """What the controller sees when it looks for the first time, before it has done anything."""
    witness = Witness()
    _run(main, msgspec.structs.replace(_scenario(), duration=_AT_ONCE, expect=[]), RunOptions(publishers=(witness,)))
    if witness.first is None:
        raise ValueError("the demo's scenario has no cycle")
    return witness.first


def reviewed(before: Inputs, main: DemoRevision, proposed: DemoRevision) -> tuple[PlanningResult, Compared]:
    """The plan of the proposal, and that of what is in force, on the same cluster."""
    wish, was = proposed.desired, main.desired
    head = decide(msgspec.structs.replace(before, desired=wish))
    return head, Compared(decide(msgspec.structs.replace(before, desired=was)), changes(was, wish))


def performed(merged: DemoRevision, look: Callable[[TimelineStep], None]) -> tuple[Simulated, Witness]:
    """What came of it; `look` is told each step as time passes."""
    witness = Witness()
    return _run(merged, _scenario(), RunOptions(publishers=(witness,), look=look)), witness


def decided(inputs: Inputs) -> PlanningResult:
    """The plan that follows from them."""
    return decide(inputs)


def number_of_steps() -> int:
    """As how many steps the story is told."""
    duration_ms = _scenario().duration.milliseconds
    return duration_ms // step_ms(duration_ms) + 1


def scenario_file() -> bytes:
    """The same story for `reconciler simulate`, with the policies in a folder beside it."""
    scenario = msgspec.structs.replace(_scenario(), policies=[Folder(folder="policies")])
    return scenario_text("demo", scenario).encode()


def _scenario() -> Scenario:
    read = read_scenario(demo_scenario())
    if read.scenario is None:
        raise ValueError(f"the demo's scenario has problems: {read.problems}")
    return read.scenario


def _run(revision: DemoRevision, scenario: Scenario, watched: RunOptions) -> Simulated:
    return run(Play("demo", scenario, (Revised(0, revision.desired),), scenario.seed), watched)
