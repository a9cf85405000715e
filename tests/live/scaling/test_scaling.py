"""Scenarios A, B and C of the spec with real nodes, a tenth of the size; a pod that needs a marked node gets it.

All begin alike, so that they happen side by side, each in a pool of its own, and are judged afterwards.
"""

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.lab import identities
from tests.lab.audit import Write
from tests.lab.lab import Lab
from tests.stages.scaling.scaled import DELAY_MS, Moment, Scaled

SOFT, HARD = "PreferNoSchedule", "NoSchedule"
NODES, BUSY = 12, 8
HARD_AHEAD_MS = 30_000


class Story(NamedTuple):
    """What happened: pools by moment, and what was written meanwhile."""

    time: int  # when what is marked at first is due
    moments: dict[str, dict[str, Moment]]
    landed: dict[str, list[str]]  # nodes of the pods that came, by pool
    bought: set[str]  # NodeClaims at the beginning
    left: set[str]  # and at the end
    writes: list[Write]

    def of(self, pool: str) -> dict[str, Moment]:
        return {name: pools[pool] for name, pools in self.moments.items()}


@pytest.fixture(scope="module")
def story(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    lab.wipe()
    scaled = Scaled(lab, tmp_path_factory.mktemp("scaled"), ("a", "b", "c", "d"))
    try:
        scaled.buys(NODES)
        scaled.ends([f"{pool}-{number}" for pool in scaled.pools for number in range(BUSY, NODES)])
        yield told(scaled)
    finally:
        scaled.close()
        lab.wipe()


def told(scaled: Scaled) -> Story:
    audit, bought = scaled.lab.audit(), scaled.claims()
    moments = {"begin": scaled.cycle()}
    time = moments["begin"]["a"].marked[0][1]
    landed = {"c": scaled.comes("c", ["c-late"]), "d": scaled.comes("d", [f"d-late-{number}" for number in range(3)])}
    moments["halfway"] = scaled.at(time - DELAY_MS // 2)
    moments["not yet near"] = scaled.at(time - HARD_AHEAD_MS - 1)
    moments["near"] = scaled.at(time - HARD_AHEAD_MS)
    moments["not yet due"] = scaled.at(time - 1)
    scaled.ends(["b-0", "b-1"])
    moments["due"] = scaled.at(time)
    moments["next"] = scaled.cycle()
    scaled.at(time + DELAY_MS - HARD_AHEAD_MS)
    moments["due again"] = scaled.at(time + DELAY_MS)
    moments["end"] = scaled.cycle()
    gone = {name for each in moments["begin"].values() for name in each.nodes}
    gone -= {name for each in moments["end"].values() for name in each.nodes}
    for name in gone:  # Karpenter takes the machine back, and then its finalizer off
        scaled.admin.wait_for("nodes", name, lambda found: found is None)
    for name in scaled.claims():  # and the claim goes a little after its node
        scaled.admin.wait_for(
            "nodeclaims", name, lambda found: not found or not found["metadata"].get("deletionTimestamp")
        )
    return Story(time, moments, landed, bought, scaled.claims(), audit.writes())


def test_scenario_a_what_is_too_much_is_marked_made_hard_and_deleted(story: Story) -> None:
    found = story.of("a")
    assert {name: (each.size, each.target, each.done) for name, each in found.items()} == {
        "begin": (12, 10, {"SurplusEmptyNode": 2}),
        "halfway": (12, 10, {}),
        "not yet near": (12, 10, {}),
        "near": (12, 10, {"DeletionNear": 2}),
        "not yet due": (12, 10, {}),
        "due": (12, 10, {"EmptyNodeDeleted": 2}),
        "next": (10, 10, {}),
        "due again": (10, 10, {}),
        "end": (10, 10, {}),
    }
    assert story.time >= found["begin"].at + DELAY_MS
    assert [each[1:] for each in found["begin"].marked] == [(story.time, SOFT)] * 2
    assert found["not yet near"].marked == found["begin"].marked
    assert found["near"].marked == [(name, story.time, HARD) for name, _, _ in found["begin"].marked]
    assert found["begin"].nodes - found["due"].nodes == {each[0] for each in found["begin"].marked}


def test_scenario_b_what_is_due_goes_first_and_then_more_is_marked(story: Story) -> None:
    found = story.of("b")
    assert (found["due"].size, found["due"].target, found["due"].done) == (12, 7, {"EmptyNodeDeleted": 2})
    assert found["due"].marked == []
    assert (found["next"].size, found["next"].target, found["next"].done) == (10, 7, {"SurplusEmptyNode": 3})
    assert [each[1:] for each in found["next"].marked] == [(story.time + DELAY_MS, SOFT)] * 3
    assert found["due again"].done == {"EmptyNodeDeleted": 3}
    assert (found["end"].size, found["end"].target, found["end"].done) == (7, 7, {})


def test_scenario_c_a_mark_comes_off_when_more_is_used_and_the_other_node_goes(story: Story) -> None:
    found = story.of("c")
    assert not set(story.landed["c"]) & {each[0] for each in found["begin"].marked}  # there is room elsewhere
    assert (found["halfway"].size, found["halfway"].target) == (12, 11)
    assert found["halfway"].done == {"NoLongerSurplus": 1}
    assert found["halfway"].marked == found["begin"].marked[:1]
    assert found["due"].done == {"EmptyNodeDeleted": 1}
    assert (found["end"].size, found["end"].target, found["end"].done) == (11, 11, {})


def test_a_pod_that_needs_a_marked_node_gets_it_and_the_mark_comes_off(story: Story) -> None:
    found = story.of("d")
    assert len(set(story.landed["d"]) & {each[0] for each in found["begin"].marked}) == 1
    assert (found["halfway"].size, found["halfway"].target) == (12, 12)
    assert found["halfway"].done == {"MarkedNodeInUse": 1, "NoLongerSurplus": 1}
    assert found["halfway"].marked == []
    assert found["due"].done == {}
    assert (found["end"].size, found["end"].nodes) == (12, found["begin"].nodes)


def test_nothing_is_bought_and_karpenter_alone_takes_machines_back(story: Story) -> None:
    gone = {name for each in story.moments["begin"].values() for name in each.nodes}
    gone -= {name for each in story.moments["end"].values() for name in each.nodes}
    deleted = [each.object for each in story.writes if (each.user, each.verb) == (identities.RECONCILER, "delete")]
    assert sorted(deleted) == sorted(f"nodes/{name}" for name in gone)
    assert not [each for each in story.writes if each.verb == "create" and each.object.startswith("nodeclaims")]
    assert story.left < story.bought
    assert len(story.left) == 10 + 7 + 11 + 12
