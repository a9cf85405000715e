"""How long the best GPUs of one node take to be found, and a batch of changed Leases in a large fleet."""

import pytest

from tests.benchmarks.alone import alone
from tests.benchmarks.calibration import Unit
from tests.results.record import Recorder, Result

# A unit took 100 ms when bounds were set: 1 ms for a choice, 5 ms for a batch.
MOST_UNITS, MOST_BATCH_UNITS = 0.01, 0.05
NODES = 5_000


@pytest.mark.bench
def test_the_best_gpus_of_a_node_are_found_within_a_millisecond(recorder: Recorder, unit: Unit) -> None:
    figures = alone("tests.benchmarks.devices.choosing", 1, NODES)
    slowest = max(figures["slowest_known_layout_us"], figures["slowest_new_layout_us"])
    is_slow = slowest > 1_000_000 * MOST_UNITS * unit.seconds
    is_batch_slow = figures["ledger_batch_ms"] > unit.of_ms(MOST_BATCH_UNITS)
    what = "the best GPUs of drawn boards of 8 and 16, none from a cache of results; 40,000 Leases in a ledger"
    bounds = {
        **unit.figures,
        "most_units": MOST_UNITS,
        "most_us": round(1_000_000 * MOST_UNITS * unit.seconds),
        "most_batch_units": MOST_BATCH_UNITS,
        "most_batch_ms": unit.of_ms(MOST_BATCH_UNITS),
    }
    failures = int(is_slow) + int(is_batch_slow)
    recorder.write(Result("bench-devices", what, figures["choices"], failures, seed=1, figures={**figures, **bounds}))
    assert not is_slow
    assert not is_batch_slow
