"""The controller binds pods with a GpuClaim itself, where no second scheduler runs."""

import hypothesis.strategies as some
import pytest
from hypothesis import given, settings

from tests.unit.simulate.extender.stage import MIXED_CLAIMS, MIXED_WORKLOADS, SOLD_OUT, Played, claim, kept, play
from tests.unit.simulate.extender.test_kills import EFFECTS, GPUS, crash


def test_pods_get_gpus_of_one_island_and_a_lease_for_each() -> None:
    played = Played(play([claim("pair", 2, policy="requireContiguous")], [kept("pair", 3)], scheduler="builtin"))
    assert sorted(played.bound.values()) == [(0, 1), (2, 3), (4, 5)]
    assert played.lent == played.bound
    assert "ClaimedGpusBound" in played.codes
    assert played.result.broken == ()


def test_the_external_scheduler_leaves_nothing_to_the_planner() -> None:
    played = Played(play([claim("pair", 2)], [kept("pair", 3)]))
    assert not played.codes & {"ClaimedGpusBound", "NoNodeForClaim"}


def test_pods_of_one_plan_share_no_gpu_and_no_cpu() -> None:
    """Each pod has 30 of 96 cpus: three fit on a node."""
    wanted = [kept("one", 7, resources={"cpu": "30"})]
    played = Played(play([claim("one", 1)], wanted, nodes=2, faults=[SOLD_OUT], scheduler="builtin"))
    assert len(played.bound) == 6
    assert played.lent == played.bound
    assert "NoNodeForClaim" in played.codes
    assert played.result.broken == ()


def test_the_pod_of_higher_priority_is_bound_first() -> None:
    workloads = [kept("low", 2), kept("high", 1, priority=5)]
    played = Played(play([claim("low", 8), claim("high", 8)], workloads, faults=[SOLD_OUT], scheduler="builtin"))
    assert [name.partition("-")[0] for name in played.bound] == ["high"]


def test_the_best_node_is_the_one_that_the_extender_chooses() -> None:
    """A pair goes where it breaks no island of four."""
    claims = [claim("two", 2, policy="requireContiguous"), claim("four", 4, policy="requireContiguous")]
    workloads = [kept("two", 1), kept("four", 3, begins=30), kept("two-more", 1, begins=60)]
    claims.append(claim("two-more", 2, policy="requireContiguous"))
    ends = [
        Played(play(claims, workloads, nodes=2, faults=[SOLD_OUT], scheduler=scheduler))
        for scheduler in ("external", "builtin")
    ]
    first, second = (sorted((played.pods[name].node, ids) for name, ids in played.bound.items()) for played in ends)
    assert first == second
    assert len(first) == 5


@pytest.mark.parametrize("writes", range(1, EFFECTS + 1))
def test_killed_after_an_effect_of_a_binding_nothing_leaks(writes: int) -> None:
    faults = [crash(writes, 59), SOLD_OUT]
    claims = [claim("four", GPUS, policy="requireContiguous")]
    played = Played(play(claims, [kept("four", 2, begins=60)], faults=faults, scheduler="builtin"))
    assert played.result.broken == ()
    assert sorted(played.bound.values()) == [(0, 1, 2, 3), (4, 5, 6, 7)]
    assert played.lent == played.bound


@given(
    kills=some.lists(some.tuples(some.integers(0, 12), some.integers(55, 400)), max_size=3),
    nodes=some.integers(1, 3),
    islands=some.sampled_from([(8,), (4, 4), (2, 2, 2, 2), ()]),
)
@settings(max_examples=4)
def test_killed_at_any_time_the_invariants_hold(
    kills: list[tuple[int, int]], nodes: int, islands: tuple[int, ...]
) -> None:
    faults = [SOLD_OUT, *(crash(writes, at) for writes, at in kills)]
    allocation = "agent" if islands else "plugin"
    played = Played(play(MIXED_CLAIMS, MIXED_WORKLOADS, nodes, 12, faults, islands, allocation, scheduler="builtin"))
    assert played.result.broken == ()
