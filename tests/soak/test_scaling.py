"""Binds raced with deletions by the thousand, and hundreds of drawn fleets that are scaled for hours."""

import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.plan.scaling.marks import HARD, SOFT
from reconciler.simulate.runner.play import Play
from tests.lab.lab import Lab
from tests.results.record import Recorder, Result
from tests.stages.scaling.drawn import drawn, outcome_of
from tests.stages.scaling.judging import broken_promises, faults_of
from tests.stages.scaling.races import LOST, Fate, Races
from tests.stages.stories.left import Faults, left_of

RUNS, AT_ONCE = 5, 200
PLAYS = 400


def raced(lab: Lab, effect: str, race: Callable[[Races], dict[str, Fate]]) -> tuple[Counter[Fate], list[float]]:
    """What became of the pods of all runs, and how long it was from each list to the deletion."""
    found, windows = Counter[Fate](), list[float]()
    for seed in range(RUNS):
        races = Races(lab, AT_ONCE, effect, seed)
        try:
            found.update(race(races).values())
            windows += races.windows_ms()
        finally:
            races.close()
            lab.wipe()
    return found, sorted(windows)


@pytest.mark.soak
def test_no_pod_is_lost_that_the_scheduler_places_as_its_node_goes(cluster: Lab, recorder: Recorder) -> None:
    cluster.start("scheduler", "kwok")
    found, _ = raced(cluster, SOFT, Races.schedule_at_random)
    lost = sum(found[each] for each in LOST)
    what = "pods that the scheduler placed as their node was made hard and deleted, and that were lost"
    figures: dict[str, float | int | str] = {each.name.lower(): found[each] for each in (Fate.KEPT, Fate.WAITING)}
    recorder.write(Result("soak-raced-binds", what, found.total(), lost, RUNS, figures))
    assert lost == 0
    assert min(found[Fate.KEPT], found[Fate.WAITING]) > RUNS * AT_ONCE // 10


@pytest.mark.soak
def test_no_pod_is_overlooked_whoever_bound_it(cluster: Lab, recorder: Recorder) -> None:
    """Nobody asks the taint: what is bound in the moment between the list and the deletion goes with its node."""
    for part in ("scheduler", "kwok"):
        cluster.stop_part(part)
    found, windows = raced(cluster, HARD, Races.bind_at_random)
    what = "pods bound by hand before their hard-tainted node was found empty, which was deleted all the same"
    figures: dict[str, float | int | str] = {each.name.lower(): found[each] for each in Fate}
    figures["median_ms_from_list_to_deletion"] = round(windows[len(windows) // 2], 3)
    recorder.write(Result("soak-bound-by-hand", what, found.total(), found[Fate.OVERLOOKED], RUNS, figures))
    assert not found[Fate.OVERLOOKED]
    assert found[Fate.KEPT]


@pytest.mark.soak
def test_whatever_comes_scaling_keeps_its_promises(recorder: Recorder, tmp_path: Path) -> None:
    faults, failed, done = dict[int, list[str]](), list[Play](), Counter[str]()
    for seed in range(PLAYS):
        with tempfile.TemporaryDirectory() as folder:
            outcome = drawn(Path(folder), seed)
        done.update(each.did for each in outcome.told)
        if found := faults_of(outcome):
            faults[seed] = found
            failed.append(outcome.play)
    what = "fleets and loads drawn at random and scaled for four hours, in which a promise of scaling was not kept"
    recorder.write(Result("soak-scaling", what, PLAYS, len(faults), 0, dict(done)))
    small = [left_of(each, within(each), tmp_path / f"small-{each.seed}.yaml") for each in failed]
    assert faults == {}, small


def within(whole: Play) -> Faults:
    """A story that ends sooner has not come to rest yet: what it fails then is another matter."""
    return lambda play: (
        broken_promises(outcome_of(play)) if play.scenario.duration == whole.scenario.duration else frozenset()
    )
