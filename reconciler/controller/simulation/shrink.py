"""Looks for a small scenario that fails as a larger one does."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from reconciler.controller.simulation.load import relative
from reconciler.simulate.bootstrap.check_names import unknown_names
from reconciler.simulate.runner.play import Play
from reconciler.simulate.runner.run import RunOptions, run
from reconciler.simulate.runner.shrink import MOST_TRIES, how_it_fails, shrink
from reconciler.simulate.scenario.spec import Scenario
from reconciler.simulate.scenario.writing import scenario_text


class ScenarioRelocation(msgspec.Struct, frozen=True):
    """Where a scenario stood, and where another is to stand: it names its files from there."""

    before: Path
    after: Path

    def path(self, named: str) -> str:
        return relative(self.before / named, self.after) if named else named


def shrunk(play: Play, moved: ScenarioRelocation, tell: Callable[[float], None]) -> str:
    """The text of the smallest that was found."""
    before = how_it_fails(run(play))
    tries = 0

    def fails(smaller: Play) -> bool:
        nonlocal tries
        tries += 1
        tell(tries / MOST_TRIES)
        if any(unknown_names((smaller,))):  # what is left must be read again
            return False
        return bool(before & how_it_fails(run(smaller, RunOptions(stops_when_broken=True))))

    small = shrink(play, fails)
    return scenario_text(f"{small.name}-shrunk", _moved(msgspec.structs.replace(small.scenario, seed=play.seed), moved))


def _moved(scenario: Scenario, moved: ScenarioRelocation) -> Scenario:
    replace, cluster = msgspec.structs.replace, scenario.cluster
    cluster = replace(cluster, dump=moved.path(cluster.dump), openb_nodes=moved.path(cluster.openb_nodes))
    workloads = [
        replace(each, trace=replace(each.trace, openb_pods=moved.path(each.trace.openb_pods))) if each.trace else each
        for each in scenario.workloads
    ]
    policies = [replace(each, folder=moved.path(each.folder)) for each in scenario.policies]
    return replace(scenario, cluster=cluster, workloads=workloads, policies=policies)
