"""Nodes at 40 % are packed closely through the real eviction API, and every budget is kept at every instant.

Twenty of them in `make test`, sixty in `make test-long`.
"""

from collections.abc import Iterator

import pytest

from reconciler.model import names
from tests.lab.audit import WRITES, Entry
from tests.lab.lab import Lab
from tests.slow import long
from tests.stages.live_drains.drained import marks
from tests.stages.live_drains.judging import below_budget
from tests.stages.live_drains.packing import AT_ONCE, NAME, SIXTY, TWENTY, Packed, needed, packed

# What a reconciler that drains may write, as verbs and resources.
EXPECTED = {
    ("patch", "nodes"),
    ("delete", "nodes"),
    ("create", "pods/eviction"),
    *((verb, "events.events.k8s.io") for verb in ("create", "patch")),  # a repeated Event is counted, not made again
    *((verb, "leases.coordination.k8s.io") for verb in ("create", "update")),
    *((verb, "configmaps") for verb in ("create", "update", "patch")),
}


@pytest.fixture(scope="module", params=[TWENTY, long(SIXTY)], ids=lambda fleet: f"{fleet.nodes}-nodes")
def story(request: pytest.FixtureRequest, lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Packed]:
    lab.wipe()
    yield packed(lab, tmp_path_factory.mktemp("packed"), request.param)
    lab.wipe()


def test_as_many_nodes_are_left_as_are_needed_and_nobody_lost_anything(story: Packed) -> None:
    least = needed(story.fleet.runs)
    assert (story.fleet.nodes, least) in {(20, 8), (60, 24)}
    assert len(story.left) == least
    assert len(story.gone) == story.fleet.nodes - least
    assert story.is_whole
    assert not story.told.waited
    assert not story.bought
    assert not any(map(marks, story.left))


def test_many_are_drained_at_once_and_never_more_than_the_policy_says(story: Packed) -> None:
    assert 1 < story.told.most_at_once[NAME] <= AT_ONCE
    assert max(map(len, story.told.batches.values())) > 1


def test_nothing_leaves_before_all_nodes_of_its_batch_are_tainted_and_no_node_before_it_is_empty(story: Packed) -> None:
    assert story.told.too_soon == []
    assert story.told.not_empty == set()
    deleted = [each.write.object for each in story.entries if each.write.verb == "delete" and each.write.code < 300]
    assert sorted(deleted) == sorted(f"nodes/{name}" for name in story.gone)


def test_pods_of_daemon_sets_leave_last(story: Packed) -> None:
    assert story.told.agents_too_soon == []
    assert story.told.agents == len(story.gone)


def test_every_budget_is_kept_at_every_instant(story: Packed) -> None:
    assert below_budget(story.told, {NAME: story.fleet.runs}) == {}


def test_what_goes_one_at_a_time_went_so_and_nobody_knocked_where_a_budget_was_spent(story: Packed) -> None:
    one_at_a_time = [each for each in story.fleet.runs if each.replicas - each.least_ready == 1]
    assert 0 in {story.told.least_ready[NAME, each.name] - each.least_ready for each in one_at_a_time}
    evictions = [each.write.code for each in story.entries if each.write.object.endswith("/eviction")]
    assert evictions.count(201) > 2 * len(story.gone)
    assert evictions.count(429) * 20 <= len(evictions)


def test_nothing_is_written_that_a_drain_does_not_need(story: Packed) -> None:
    written = [each for each in story.entries if each.write.verb in WRITES]
    assert {(each.write.verb, resource(each)) for each in written} <= EXPECTED
    patched = [each.body for each in written if (each.write.verb, resource(each)) == ("patch", "nodes")]
    assert {(*body, *body["metadata"], *body["spec"]) for body in patched} == {
        ("metadata", "spec", "resourceVersion", "taints")
    }
    taints = {taint["key"] for body in patched for taint in body["spec"]["taints"]}
    assert taints == {names.DRAINING, names.DRAIN_CANDIDATE}


def resource(entry: Entry) -> str:
    below = entry.raw["objectRef"].get("subresource")
    return "/".join(filter(None, (entry.write.object.partition("/")[0], below)))
