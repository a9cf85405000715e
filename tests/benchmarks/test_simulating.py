"""A week of 1,200 nodes, simulated: how long it takes; and that a month needs no more memory than its first week.

The whole of it is played: policies, Karpenter, faults, the recorder, and rules of safety judged on each write; and once
more without those rules, to say what they cost. What counts is the time of one processor, since others may be busy.
"""

from typing import Any

import pytest

from tests.benchmarks.alone import alone
from tests.benchmarks.calibration import Unit
from tests.results.record import Recorder, Result

MOST_UNITS, AIM_UNITS = 3_000, 600
MOST_GROWTH = 1.1
LEAST_ACTIONS = 100
PLAYING = "tests.benchmarks.simulating.playing"


@pytest.mark.bench
def test_a_week_is_simulated_within_minutes(recorder: Recorder, unit: Unit) -> None:
    told, unjudged = alone(PLAYING, 1_200, 10_000, 7, "judged"), alone(PLAYING, 1_200, 10_000, 7, "unjudged")
    is_slow = told["processor_seconds"] > unit.of_seconds(MOST_UNITS)
    what = "a week of 1,200 nodes and 10,000 pods a day, a cycle each 30 simulated seconds, in one process"
    figures = {
        **single(told),
        "processor_seconds_without_rules": unjudged["processor_seconds"],
        **unit.figures,
        "most_units": MOST_UNITS,
        "aim_units": AIM_UNITS,
        "most_seconds": unit.of_seconds(MOST_UNITS),
        "aim_seconds": unit.of_seconds(AIM_UNITS),
    }
    recorder.write(Result("bench-simulating-week", what, 1, int(is_slow), seed=1, figures=figures))
    assert not is_slow
    assert told["cycles"] > 15_000
    assert told["nodes_bought"] > 1_000
    assert told["finished_pods"] > 60_000
    assert told["actions"] > LEAST_ACTIONS
    assert (told["troubles"], told["broken"]) == (0, 0)
    assert {**told, **TIMES} == {**unjudged, **TIMES}, "rules only look on"


TIMES = {"seconds": 0, "processor_seconds": 0, "resident_mib_by_quarter": 0}


@pytest.mark.bench
def test_a_month_needs_no_more_memory_than_its_first_week(recorder: Recorder) -> None:
    told = alone(PLAYING, 300, 2_500, 28, "judged")
    first, *_, last = told["resident_mib_by_quarter"]
    grows = last / first > MOST_GROWTH
    what = "four weeks of 300 nodes and 2,500 pods a day: resident memory at the end of each"
    weeks = {f"resident_mib_after_week_{number}": mib for number, mib in enumerate(told["resident_mib_by_quarter"], 1)}
    figures = {**single(told), **weeks, "most_growth": MOST_GROWTH}
    recorder.write(Result("bench-simulating-month", what, 1, int(grows), seed=1, figures=figures))
    assert not grows
    assert told["actions"] > LEAST_ACTIONS, "provisioners scale all the time"
    assert (told["troubles"], told["broken"]) == (0, 0)


def single(told: dict[str, Any]) -> dict[str, Any]:
    """Without what is a list."""
    return {key: value for key, value in told.items() if not isinstance(value, list)}
