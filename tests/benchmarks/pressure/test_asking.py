"""How many asks of agents are answered, how soon, and how soon all agents are back after a restart."""

import pytest

from tests.benchmarks.alone import alone
from tests.benchmarks.calibration import Unit
from tests.results.record import Recorder, Result

RATE = 1_000  # asks a second
LEAST_INSIDE = 10_000  # asks in ten units
MOST_MS_UNITS, MOST_BACK_UNITS = 0.1, 100  # a unit took 100 ms when bounds were set: 10 ms and 10 s


@pytest.mark.bench
def test_agents_are_answered_within_milliseconds(recorder: Recorder, unit: Unit) -> None:
    figures = alone("tests.benchmarks.pressure.asking", RATE)
    bounds = {
        "least_inside_asks_a_second": round(LEAST_INSIDE / unit.of_seconds(10)),
        "most_tls_p99_ms": unit.of_ms(MOST_MS_UNITS),
        "most_reconnected_seconds": unit.of_seconds(MOST_BACK_UNITS),
    }
    slow = [
        figures["inside_asks_a_second"] < bounds["least_inside_asks_a_second"],
        figures["tls_p99_ms"] > bounds["most_tls_p99_ms"],
        figures["reconnected_seconds"] > bounds["most_reconnected_seconds"],
    ]
    what = "answers to asks of agents: inside, by HTTPS with tokens beside a busy process, and 5,000 agents at once"
    recorder.write(
        Result("bench-asking", what, figures["agents"], sum(slow), figures={**figures, **unit.figures, **bounds})
    )
    assert not any(slow)
