"""The fixture that bounds of time are told in."""

import pytest

from tests.benchmarks.calibration import Unit, calibrated


@pytest.fixture(scope="session")
def unit() -> Unit:
    """How fast this machine is, timed once a run."""
    found = calibrated()
    print(f"\na unit takes {found.of_ms(1)} ms here")
    return found
