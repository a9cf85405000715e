"""The story of examples/stock-out happens as its page says."""

from collections import Counter
from itertools import pairwise

import pytest

from reconciler.controller.simulation.load import SimulationRequest, prepared
from reconciler.plan.capacity.offerings import LaunchOption
from reconciler.plan.capacity.requests import CapacityRequest
from reconciler.plan.capacity.words import choice_words
from tests.lab.places import REPOSITORY
from tests.stages.stories.waiting import Waited, faults_of, waited

STORY = REPOSITORY / "examples" / "stock-out"
HOURS = ("08:00", "10:00", "12:00", "12:10", "12:40", "14:00", "16:00", "20:00")


@pytest.fixture(scope="module")
def story() -> Waited:
    (play,) = prepared(SimulationRequest(STORY / "scenario.yaml")).plays
    return waited(play)


def minutes(hour: str) -> int:
    return 60 * int(hour[:2]) + int(hour[3:]) - 8 * 60


def bought(story: Waited, begins: str, ends: str) -> str:
    """By smart pods that were made in that time and did their work."""
    last: dict[str, tuple[int, CapacityRequest]] = {}
    found = Counter[str]()
    for each in story.did:
        if each.request is not None:
            last[each.subject] = each.at, each.request
        elif each.reason == "SmartPodDone":
            at, request = last[each.subject]
            if story.when(minutes(begins)) <= at < story.when(minutes(ends)):
                found[choice_words(LaunchOption(request.instance_type, request.capacity_type))] += 1
    return ", ".join(f"{count} x {what}" for what, count in sorted(found.items()))


def test_what_is_bought_when_is_as_its_page_says(story: Waited) -> None:
    lines = (STORY / "README.md").read_text().splitlines()
    rows = [each.split("|") for each in lines if each.startswith(("| 0", "| 1"))]
    told = [(row[1].strip(), row[3].strip()) for row in rows]
    assert told == [(begins, bought(story, begins, ends)) for begins, ends in pairwise(HOURS)]


def test_and_so_is_the_rest(story: Waited) -> None:
    assert faults_of(story) == []
    assert max(step.longest_wait_seconds for step in story.simulated.steps) // 60 == 26
    assert (story.simulated.sums.nodes_bought, story.reasons("delete")["SmartPodDone"]) == (63, 63)
    refused = [each.at for each in story.did if each.reason == "CapacityAttemptsSpent"]
    assert story.when(minutes("12:10")) < min(refused)
    assert max(refused) < story.when(minutes("13:00"))
