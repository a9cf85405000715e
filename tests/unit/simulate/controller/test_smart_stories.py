"""Demand that waits for capacity, drawn by chance, and what must come of it whatever goes wrong meanwhile."""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from reconciler.plan.smart_pods import advance, planner
from tests.slow import long
from tests.stages.stories.smart import drawn
from tests.stages.stories.waiting import broken_promises, waited

FEW_SEEDS, SEEDS = 12, 40


def failed(folder: Path, seeds: int) -> Iterator[tuple[int, list[str]]]:
    """What was broken, by seed."""
    for seed in range(seeds):
        story = drawn(folder, seed)
        if told := broken_promises(story, waited(story.play)):
            yield seed, told


@pytest.mark.parametrize("seeds", [FEW_SEEDS, long(SEEDS)])
def test_whatever_comes_each_pod_runs_and_no_more_is_bought_than_that_takes(seeds: int, tmp_path: Path) -> None:
    assert dict(failed(tmp_path, seeds)) == {}


PLANTED: dict[str, tuple[ModuleType, str, Callable[..., object]]] = {
    "a smart pod that never goes": (advance, "is_usable", lambda *_: False),
    "what could not be had is forgotten": (planner, "_remembered", lambda *_: ()),
}


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_wrong_is_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*PLANTED[name])
    assert any(failed(tmp_path, 4))
