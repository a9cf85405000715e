"""A plan of a fleet in which nothing changed: what it costs, and that it costs no more in a larger fleet."""

import pytest

from tests.benchmarks.alone import alone
from tests.benchmarks.calibration import Unit
from tests.results.record import Recorder, Result

AIM_UNITS = 0.5
PLANNING = "tests.benchmarks.plans.planning"


@pytest.mark.bench
def test_an_idle_plan_is_quick_and_needs_no_more_memory_in_a_larger_fleet(recorder: Recorder, unit: Unit) -> None:
    small, large = (alone(PLANNING, *size) for size in ((500, 10_000), (5_000, 100_000)))
    growth = large["peak_kib"] / small["peak_kib"]
    slow, grows = large["again_ms"] > unit.of_ms(AIM_UNITS), growth > 1.1
    figures = {
        **{f"small_{key}": value for key, value in small.items()},
        **large,
        "peak_growth": round(growth, 3),
        **unit.figures,
        "aim_units": AIM_UNITS,
        "aim_ms": unit.of_ms(AIM_UNITS),
        "aim_peak_growth": 1.1,
    }
    what = "plan() of 5,000 nodes and 100,000 pods in which nothing changed; small: of 500 and 10,000"
    recorder.write(Result("bench-planning", what, 1, slow + grows, figures=figures))
    assert not slow
    assert not grows
