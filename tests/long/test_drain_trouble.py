"""Evictions that are refused or never answered, controllers that are killed, pods that can't leave: nothing is lost."""

from collections.abc import Iterator
from itertools import pairwise

import pytest

from reconciler.loop.retries import FIRST_RETRY_MS
from tests.lab.lab import Lab
from tests.stages.live_drains.drained import TIMES_AS_FAST, Drained, marks
from tests.stages.live_drains.judging import below_budget
from tests.stages.live_drains.troubles import KEPT, LEFT, RUNS, TRIED, TRIES, Story, Troubles, tries


@pytest.fixture(scope="module")
def story(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    lab.wipe()
    drained = Drained(lab, tmp_path_factory.mktemp("drained"), RUNS)
    try:
        with lab.proxy() as proxy:
            yield Troubles(drained, proxy).story()
    finally:
        drained.close()
        lab.wipe()


def test_the_drain_ends_as_it_would_have_and_nobody_lost_anything(story: Story) -> None:
    assert len(story.left["tried"]) == LEFT
    assert len(story.deleted) == TRIED - LEFT
    assert story.is_whole
    assert not story.told.waited
    assert not any(map(marks, story.left["tried"]))


def test_whatever_was_answered_no_node_went_with_pods_and_budgets_were_kept(story: Story) -> None:
    assert story.told.not_empty == set()
    assert story.told.agents_too_soon == []
    assert below_budget(story.told, RUNS) == {}


def test_a_batch_of_which_one_node_cannot_be_tainted_is_given_back_whole_whoever_began_it(story: Story) -> None:
    first, second = story.half_tainted
    assert first == second
    assert story.stuck not in story.told.batches[first]
    assert first not in story.told.emptied
    assert story.told.too_soon == []


def test_what_fails_is_tried_again_at_longer_and_longer_intervals(story: Story) -> None:
    found = [times for times in tries(story.exchanges).values() if len(times) > 1]
    assert max(map(len, found)) >= TRIES
    for times in found:
        gaps = [1_000 * TIMES_AS_FAST * (later - sooner) for sooner, later in pairwise(times)]
        assert all(gap > 0.9 * FIRST_RETRY_MS * 2**number for number, gap in enumerate(gaps)), gaps


def test_a_node_that_cannot_be_emptied_in_time_is_given_back_with_the_reason(story: Story) -> None:
    assert len(story.left["kept"]) == KEPT
    assert not any(map(marks, story.left["kept"]))
    (said,) = [each for each in story.given_back if "kept/queue" in each]
    assert "allows no disruption" in said
    assert story.told.least_ready["kept", "queue"] == RUNS["kept"][0].least_ready
