"""Pods that save their work first, a gang, and a pool that is scaled as well, are drained side by side."""

from collections.abc import Iterator
from datetime import datetime

import pytest

from reconciler.model import names
from reconciler.plan.drain.codes.emptying import PodEvictedSaved, PodEvictedUnsaved
from tests.lab.audit import Entry
from tests.lab.lab import Lab
from tests.stages.definitions import defined
from tests.stages.live_drains.companions import GANG, KEPT, RANKS, RUNS, SAVING, SCALED, Story, story_of
from tests.stages.live_drains.drained import Drained, marks
from tests.stages.live_drains.judging import broken

pytestmark = pytest.mark.long  # test_packing.py is the story of make test


@pytest.fixture(scope="module")
def drained(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drained]:
    lab.wipe()
    with defined(lab):
        drained = Drained(lab, tmp_path_factory.mktemp("companions"), RUNS)
        try:
            yield drained
        finally:
            drained.close()
    lab.wipe()


@pytest.fixture(scope="module")
def story(drained: Drained) -> Story:
    return story_of(drained)


def test_each_pool_is_packed_and_nobody_lost_anything(story: Story) -> None:
    assert {pool: len(nodes) for pool, nodes in story.left.items()} == KEPT
    assert not any(marks(node) for nodes in story.left.values() for node in nodes)
    assert broken(story.told, RUNS) == []
    assert story.is_whole


def test_who_saves_its_work_is_told_first_and_goes_once_it_has_and_else_when_its_time_is_over(
    story: Story, drained: Drained
) -> None:
    evictions = {pod_of(each): each for each in evicted(story.entries, SAVING) if pod_of(each).startswith("trainer-")}
    assert story.saved.keys() < evictions.keys(), "some did, and some did not"
    for pod, eviction in evictions.items():
        before = story.entries[: story.entries.index(eviction)]
        (told,) = [each for each in before if each.write.object == f"pods/{SAVING}/{pod}" and evict_at(each)]
        at = datetime.fromisoformat(evict_at(told)).timestamp()
        if pod in story.saved:
            assert (pod, PodEvictedSaved.__name__) in story.events
            assert drained.by_its_clock(received(eviction)) >= datetime.fromisoformat(story.saved[pod]).timestamp()
        else:
            assert (pod, PodEvictedUnsaved.__name__) in story.events
            assert drained.by_its_clock(received(eviction)) >= at


def test_a_gang_stays_while_one_of_it_may_not_leave(story: Story) -> None:
    assert evicted(story.held, GANG, dry_runs=True) == []


def test_then_all_of_it_is_asked_by_dry_runs_first_and_all_of_it_leaves(story: Story) -> None:
    asked = [(rank_of(each), is_dry(each)) for each in evicted(story.entries, GANG, dry_runs=True) if rank_of(each)]
    size = len(RANKS)
    assert asked, "it ran on a node that had to go"
    assert len(asked) % (2 * size) == 0
    for at in range(0, len(asked), 2 * size):
        dry, real = asked[at : at + size], asked[at + size : at + 2 * size]
        assert sorted(dry) == [(rank, True) for rank in RANKS]
        assert sorted(real) == [(rank, False) for rank in RANKS]


def test_a_pool_that_is_scaled_too_loses_empty_nodes_to_scaling_and_others_to_the_drain_and_keeps_what_it_is_to_keep(
    story: Story,
) -> None:
    drained = {node for nodes in story.told.batches.values() for node in nodes}
    assert story.taken.staying[SCALED] >= KEPT[SCALED]
    assert story.taken.scaled
    assert not story.taken.scaled & drained
    assert story.taken.both == set()


def evicted(entries: list[Entry], namespace: str, dry_runs: bool = False) -> list[Entry]:
    """Asked, and allowed to."""
    found = [each for each in entries if each.write.object.startswith(f"pods/{namespace}/")]
    found = [each for each in found if each.write.object.endswith("/eviction") and each.write.code < 300]
    return [each for each in found if dry_runs or not is_dry(each)]


def is_dry(entry: Entry) -> bool:
    return bool(entry.body["deleteOptions"].get("dryRun"))


def evict_at(entry: Entry) -> str:
    """What the pod is told by it; nothing where it says nothing of that."""
    annotations = ((entry.body or {}).get("metadata") or {}).get("annotations") or {}
    return annotations.get(names.EVICT_AT) or ""


def received(entry: Entry) -> float:
    return datetime.fromisoformat(entry.raw["requestReceivedTimestamp"]).timestamp()


def rank_of(entry: Entry) -> str:
    return next((each for each in RANKS if pod_of(entry).startswith(f"{each}-")), "")


def pod_of(entry: Entry) -> str:
    return entry.write.object.split("/")[2]
