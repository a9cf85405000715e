"""How long it takes until a thousand nodes are packed on five hundred, each drain of which takes half an hour."""

import pytest

from tests.benchmarks.alone import alone
from tests.results.record import Recorder, Result

WATCHED_DAYS = {1: 12.0, 10: 2.0, 50: 1.0}  # by how many are drained at once
GOES = 500
LEAST_MINUTES = 30  # of one drain: what pods take to end


@pytest.mark.bench
def test_a_thousand_nodes_are_packed_on_half_of_them(recorder: Recorder) -> None:
    found = {
        parallelism: alone("tests.benchmarks.simulating.draining", parallelism, days)
        for parallelism, days in WATCHED_DAYS.items()
    }
    print("\nmaxDrainParallelism  hours")
    for parallelism, told in found.items():
        print(f"{parallelism:19}  {told['hours']:5}")
    figures: dict[str, float | int | str] = {
        f"at_{parallelism}_{name}": value for parallelism, told in found.items() for name, value in told.items()
    }
    broken = sum(told["broken"] for told in found.values())
    what = "1,000 nodes that fit on 500, of pods that take 30 minutes to end: simulated hours until 500 nodes are gone"
    recorder.write(Result("bench-drain-thousand", what, len(found), broken, seed=1, figures=figures))
    assert broken == 0
    for parallelism, told in found.items():
        assert (told["drained"], told["nodes_at_the_end"], told["pending_at_the_end"]) == (GOES, GOES, 0)
        # Each drain evicts one pod once, no more at once than allowed, and no slot stays free for long.
        assert (told["evicted"], told["most_at_once"]) == (GOES, parallelism)
        assert 1 <= told["hours"] / (GOES / parallelism * LEAST_MINUTES / 60) < 1.1
