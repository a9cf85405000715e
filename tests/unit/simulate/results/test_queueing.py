"""The queue in the timeline: what waits between two steps is seen by the step after it."""

from pathlib import Path

from reconciler.controller.simulation.load import SimulationRequest, prepared
from reconciler.simulate.runner.run import run
from tests.lab.places import REPOSITORY
from tests.stages.scaling.drawn import played, pool, provisioner


def test_a_wait_within_a_step_is_in_the_timeline(tmp_path: Path) -> None:
    """Steps of a day are five minutes apart, and a machine comes within three."""
    scenario = {"duration": "24h", "workloads": [{"name": "late", "gpus": 8, "begins": "62m", "constant": {"pods": 3}}]}
    told = played(tmp_path, [pool("a100"), provisioner("a100")], scenario).simulated
    waited = [each for each in told.steps if each.longest_wait_seconds]
    assert len(waited) == 1
    assert (waited[0].pending_pods, waited[0].pending_gpus) == (3, 24)
    assert waited[0].longest_wait_seconds >= told.sums.mean_wait_seconds > 60
    assert (told.steps[-1].pending_pods, told.steps[-1].pending_gpus) == (0, 0)


def test_the_longest_wait_of_the_quiet_day_is_at_least_the_mean() -> None:
    told = run(prepared(SimulationRequest(REPOSITORY / "examples" / "quiet-day" / "scenario.yaml")).plays[0])
    assert told.sums.mean_wait_seconds > 0
    assert told.sums.gpu_ms_pending > 0
    assert max(each.longest_wait_seconds for each in told.steps) >= told.sums.mean_wait_seconds
    assert max(each.pending_gpus for each in told.steps) > 0
