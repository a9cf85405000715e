"""Plans of drains, with timers, 500 budgets and hints, beside the fleet's own question of which nodes can go."""

import pytest

from tests.benchmarks.alone import alone
from tests.results.record import Recorder, Result

MOST_TIMES = 2.0
TEXTS = {
    "equal": "plans of drains on 2,000 nodes with 80,000 pods alike, beside what the fleet itself takes to find them",
    "distinct": "the same with 80,000 pods of which no two ask for the same",
    "diverse": "the same on 5,000 nodes with 150,000 pods of 500 classes",
}


@pytest.mark.bench
@pytest.mark.parametrize(("kind", "nodes"), [("equal", 2_000), ("distinct", 2_000), ("diverse", 5_000)])
def test_a_plan_takes_at_most_twice_what_the_fleet_takes(recorder: Recorder, kind: str, nodes: int) -> None:
    figures = alone("tests.benchmarks.draining.planning", kind, nodes)
    slow = figures["times_the_fleet"] > MOST_TIMES
    told = {**figures, "must_times_the_fleet": MOST_TIMES}
    recorder.write(Result(f"bench-drain-{kind}", TEXTS[kind], nodes, int(slow), figures=told))
    assert figures["budgets"] == 500
    # All that can go bear their taints, and half of these are due; none of them was found anew.
    assert figures["candidates"] == figures["timers"] == figures["nodes_with_hints_kept"] > nodes // 3
    assert not slow
