"""The controller with its extender is killed at each effect of a Binding, and started again: nothing leaks, no GPU is
lent twice, and every pod that fits is bound.
"""

import hypothesis.strategies as some
import pytest
from hypothesis import given, settings

from reconciler.model.quantity import Duration
from reconciler.simulate.scenario.spec import ScenarioFault
from tests.unit.simulate.extender.stage import MIXED_CLAIMS, MIXED_WORKLOADS, SOLD_OUT, Played, claim, kept, play

GPUS = 4
EFFECTS = GPUS + 1  # a Lease for each GPU, and the Binding


def crash(after_writes: int, at: int) -> ScenarioFault:
    """The process dies after so many of its writes from that second on."""
    return ScenarioFault(fault="ControllerCrash", at=Duration(at * 1_000), after_writes=after_writes)


@pytest.mark.parametrize("writes", range(EFFECTS + 1))
def test_killed_after_an_effect_of_a_binding_nothing_leaks(writes: int) -> None:
    """The pods are created after a minute, when everything else is at rest."""
    workloads = [kept("four", 2, begins=60)]
    faults = [crash(writes, 60 if not writes else 59), SOLD_OUT]
    played = Played(play([claim("four", GPUS, policy="requireContiguous")], workloads, faults=faults))
    assert played.result.broken == ()
    assert sorted(played.bound.values()) == [(0, 1, 2, 3), (4, 5, 6, 7)]
    assert played.lent == played.bound


@pytest.mark.parametrize("writes", range(EFFECTS + 1))
@pytest.mark.parametrize("away", [2, 120])
def test_a_pod_that_is_deleted_while_the_killed_controller_is_away_leaves_no_lease(writes: int, away: int) -> None:
    workloads = [kept("four", 1, begins=60, ends=Duration(61_000 + away * 500)), kept("whole", 1, begins=62)]
    stopped = ScenarioFault(fault="ControllerAbsent", at=Duration(60_400), lasts=Duration(away * 1_000))
    faults = [crash(writes, 59), stopped, SOLD_OUT]
    claims = [claim("four", GPUS, policy="requireContiguous"), claim("whole", 8)]
    played = Played(play(claims, workloads, faults=faults, minutes=12))
    assert played.result.broken == ()
    assert list(played.bound.values()) == [tuple(range(8))]
    assert played.lent == played.bound


@given(
    kills=some.lists(some.tuples(some.integers(0, 12), some.integers(55, 400)), min_size=1, max_size=4),
    late=some.sampled_from([0, 1, 5, 30]),
    nodes=some.integers(1, 3),
    islands=some.sampled_from([(8,), (4, 4), (2, 2, 2, 2), ()]),
)
@settings(max_examples=5)
def test_killed_at_any_time_the_invariants_hold(
    kills: list[tuple[int, int]], late: int, nodes: int, islands: tuple[int, ...]
) -> None:
    faults = [SOLD_OUT, *(crash(writes, at) for writes, at in kills)]
    if late:
        faults.append(ScenarioFault(fault="LateWatch", at=Duration(30_000), delay=Duration(late * 1_000)))
    allocation = "agent" if islands else "plugin"
    played = Played(play(MIXED_CLAIMS, MIXED_WORKLOADS, nodes, 12, faults, islands, allocation))
    assert played.result.broken == ()
    taken = [(pod.node, each) for name, ids in played.bound.items() for pod in (played.pods[name],) for each in ids]
    assert len(taken) == len(set(taken))
