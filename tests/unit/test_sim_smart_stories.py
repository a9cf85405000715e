"""Demand that waits for capacity, drawn by chance, and what must come of it whatever goes wrong meanwhile."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from reconciler.plan.smart_pods import advance, planner
from tests.stages.stories.smart import drawn
from tests.stages.stories.waiting import broken_promises, waited

SEEDS = 40


def failed(folder: Path, seeds: int) -> dict[int, list[str]]:
    stories = {seed: drawn(folder, seed) for seed in range(seeds)}
    found = {seed: broken_promises(story, waited(story.play)) for seed, story in stories.items()}
    return {seed: told for seed, told in found.items() if told}


def test_whatever_comes_each_pod_runs_and_no_more_is_bought_than_that_takes(tmp_path: Path) -> None:
    assert failed(tmp_path, SEEDS) == {}


PLANTED: dict[str, tuple[ModuleType, str, Callable[..., object]]] = {
    "a smart pod that never goes": (advance, "is_usable", lambda *_: False),
    "what could not be had is forgotten": (planner, "_remembered", lambda *_: ()),
}


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_wrong_is_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*PLANTED[name])
    assert failed(tmp_path, 4)
