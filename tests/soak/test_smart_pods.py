"""Demand that waits for capacity, drawn by the thousand, and what must come of it whatever goes wrong meanwhile."""

import tempfile
from collections import Counter
from pathlib import Path

import pytest

from reconciler.simulate.runner.play import Play
from tests.results.record import Recorder, Result
from tests.stages.stories.left import Faults, left_of
from tests.stages.stories.smart import drawn
from tests.stages.stories.waiting import broken_promises, waited, ways

STORIES = 2_000


@pytest.mark.soak
def test_whatever_comes_each_pod_runs_and_no_more_is_bought_than_that_takes(recorder: Recorder, tmp_path: Path) -> None:
    faults, failed, done = dict[int, list[str]](), list[Play](), Counter[str]()
    for seed in range(STORIES):
        with tempfile.TemporaryDirectory() as folder:
            story = drawn(Path(folder), seed)
        found = waited(story.play)
        done.update(each.verb for each in found.did)
        done["machines"] += found.simulated.sums.nodes_bought
        if told := broken_promises(story, found):
            faults[seed] = told
            failed.append(story.play)
    what = (
        "stories of demand that waits, drawn by chance, in which a pod never ran, too much was bought, or a rule broken"
    )
    recorder.write(Result("soak-smart-pods", what, STORIES, len(faults), 0, dict(done)))
    small = [left_of(each, within(each), tmp_path / f"small-{each.seed}.yaml") for each in failed]
    assert faults == {}, small


def within(whole: Play) -> Faults:
    """A story that ends sooner has not come to rest yet: what it fails then is another matter."""
    return lambda play: ways(waited(play)) if play.scenario.duration == whole.scenario.duration else frozenset()
