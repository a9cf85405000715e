"""A cycle of the planner that scales: a hundred provisioners, at rest, busy, and with pods waiting."""

import pytest

from tests.benchmarks.alone import alone
from tests.benchmarks.calibration import Unit
from tests.results.record import Recorder, Result

AIM_UNITS = 1.0
PROVISIONERS = 100
JUDGED = ("idle_ms", "busy_ms", "waiting_ms")  # each the median of its rounds


@pytest.mark.bench
def test_a_hundred_provisioners_are_looked_at_quickly(recorder: Recorder, unit: Unit) -> None:
    figures = alone("tests.benchmarks.plans.scaling", 5_000, 100_000, PROVISIONERS)
    slow = max(figures[each] for each in JUDGED) > unit.of_ms(AIM_UNITS)
    what = "a cycle of scaling, of 5,000 nodes and 100,000 pods: nothing changed; 100 nodes and pods did; 200 pods wait"
    aims = {**unit.figures, "aim_units": AIM_UNITS, "aim_ms": unit.of_ms(AIM_UNITS)}
    recorder.write(Result("bench-scaling", what, PROVISIONERS, int(slow), figures={**figures, **aims}))
    assert not slow
