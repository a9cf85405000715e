"""Drains on the lab by the clock on the wall, and of applications drawn at random: every promise is kept."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.lab.lab import Lab
from tests.results.record import Recorder, Result
from tests.stages.live_drains.applications import Application
from tests.stages.live_drains.drained import TIMES_AS_FAST, Drained
from tests.stages.live_drains.judging import broken
from tests.stages.live_drains.packing import AT_ONCE, NAME, NODES, RUNS, Fleet, Packed, needed, packed
from tests.stages.live_drains.troubles import RUNS as TRIED
from tests.stages.live_drains.troubles import Troubles

SEEDS = range(1, 4)
MOST_PODS, LARGEST = 190, 48


def drawn(seed: int) -> list[Application]:
    """So many pods that the nodes are used at 40 %, in applications of any size, speed and patience."""
    chance = random.Random(seed)
    found: list[Application] = []
    while (left := MOST_PODS - sum(each.replicas for each in found)) > 0:
        replicas = min(left, chance.randint(1, LARGEST))
        application = Application(
            f"app-{len(found)}",
            replicas,
            # One that allows nothing would keep its nodes for ever.
            least_ready=chance.randrange(replicas // 2, replicas),
            by=chance.choice(("maxUnavailable", "minAvailable")),
            kind=chance.choice(("Deployment", "StatefulSet")),
            cpu=str(chance.randint(1, 4)),
            starts_after=f"{chance.randrange(4)}s",
            dies_after_seconds=chance.randrange(6),
        )
        found.append(application)
    return found


def faults_of(story: Packed, runs: list[Application]) -> list[str]:
    found = broken(story.told, {NAME: runs})
    found += [f"{len(story.left)} nodes are left"] if len(story.left) != needed(runs) else []
    found += [] if story.is_whole else ["somebody misses pods"]
    found += ["nodes were bought"] if story.bought else []
    return found + (["too many at once"] if story.told.most_at_once[NAME] > AT_ONCE else [])


@pytest.mark.soak
def test_whatever_runs_on_them_sixty_nodes_are_packed_and_every_promise_is_kept(
    cluster: Lab, recorder: Recorder, tmp_path: Path
) -> None:
    faults: dict[int, list[str]] = {}
    answered: dict[str, int] = {}
    for seed in SEEDS:
        runs = drawn(seed)
        with folder(tmp_path, seed) as own:
            story = packed(cluster, own, Fleet(runs=runs))
        cluster.wipe()
        for each in story.entries:
            if each.write.object.endswith("/eviction"):
                told = f"evictions_answered_{each.write.code}"
                answered[told] = answered.get(told, 0) + 1
        if found := faults_of(story, runs):
            faults[seed] = found
    what = f"fleets of {NODES} nodes on the lab, with applications drawn at random, of which packing broke a promise"
    figures: dict[str, float | int | str] = {**answered, "times_as_fast": TIMES_AS_FAST}
    recorder.write(Result("soak-drains", what, len(SEEDS), len(faults), SEEDS[0], figures))
    assert faults == {}


@pytest.mark.soak
def test_by_the_clock_on_the_wall_nothing_is_different(cluster: Lab, recorder: Recorder, tmp_path: Path) -> None:
    with folder(tmp_path, 0) as own:
        story = packed(cluster, own, times_as_fast=1)
    faults = faults_of(story, list(RUNS))
    cluster.wipe()
    with folder(tmp_path, 1) as own:
        faults += troubled(cluster, own)
    what = (
        "promises that drains broke on the lab by the clock on the wall: sixty nodes packed, and a drain full of faults"
    )
    evictions = sum(each.write.object.endswith("/eviction") for each in story.entries)
    recorder.write(Result("soak-drains-real-time", what, 2, len(faults), 0, {"evictions": evictions}))
    assert faults == []


def troubled(lab: Lab, own: Path) -> list[str]:
    drained = Drained(lab, own, TRIED, times_as_fast=1)
    try:
        with lab.proxy() as proxy:
            story = Troubles(drained, proxy).story()
    finally:
        drained.close()
    return broken(story.told, TRIED) + ([] if story.is_whole else ["somebody misses pods"])


@contextmanager
def folder(parent: Path, number: int) -> Iterator[Path]:
    """One of its own for each story."""
    own = parent / str(number)
    own.mkdir()
    yield own
