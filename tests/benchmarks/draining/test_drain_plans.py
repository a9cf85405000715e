"""Plans of drains, with timers, 500 budgets and hints, beside the fleet's own question of which nodes can go."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

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
    figures = planned(kind, nodes)
    slow = figures["times_the_fleet"] > MOST_TIMES
    told = {**figures, "must_times_the_fleet": MOST_TIMES}
    recorder.write(Result(f"bench-drain-{kind}", TEXTS[kind], nodes, int(slow), figures=told))
    assert figures["budgets"] == 500
    # All that can go bear their taints, and half of these are due; none of them was found anew.
    assert figures["candidates"] == figures["timers"] == figures["nodes_with_hints_kept"] > nodes // 3
    assert not slow


def planned(kind: str, nodes: int) -> dict[str, Any]:
    """In a process of its own, so that memory is that of one fleet."""
    command = [sys.executable, "-m", "tests.benchmarks.draining.planning", kind, str(nodes)]
    root = Path(__file__).parents[3]
    done = subprocess.run(command, capture_output=True, text=True, cwd=root, check=False)
    assert done.returncode == 0, done.stderr
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures
