"""Fixtures that any test may ask for: the lab, a clean cluster on it, and a place for figures."""

import os
from collections.abc import Iterator

import hypothesis
import pytest

from tests.lab import build
from tests.lab.lab import Lab
from tests.lab.toolchain import LabUnavailable
from tests.results.record import Recorder

pytest_plugins = ["tests.budget"]

# The same examples each time: a test that fails in one run of a commit fails in all of them. Soak draws at random.
hypothesis.settings.register_profile(
    "test", derandomize=True, deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("test")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record", action="store_true", help="write recorded output again; then read the difference")


NO_LAB = "no lab: "


@pytest.fixture(scope="session")
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """The control plane, one for the whole run of a worker; tests start on it what else they need."""
    try:
        built = build.built()
    except LabUnavailable as missing:
        if os.environ.get("CI") == "true":
            request.session.shouldfail = f"the lab is missing, and CI must not go without: {missing}"
            pytest.fail(request.session.shouldfail, pytrace=False)
        pytest.skip(f"{NO_LAB}{missing}")
    with Lab(built) as lab:
        yield lab


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", ())
    # Asked of the reports: the lab may have been missed by a worker, which is another process.
    reasons = {each.longrepr[2].partition(NO_LAB)[2] for each in skipped if isinstance(each.longrepr, tuple)} - {""}
    if reasons:
        line = f"NO LAB, {len(skipped)} TESTS DID NOT RUN: {min(reasons)}"
        terminalreporter.write_line(line, red=True, bold=True)


@pytest.fixture
def cluster(lab: Lab) -> Lab:
    """The lab with nothing on it; what a test leaves behind, the next one that needs it clean takes away."""
    lab.wipe()
    return lab


@pytest.fixture
def recorder(request: pytest.FixtureRequest) -> Recorder:
    """Writes the figures of a long test to tests/results."""
    return Recorder(request.config.rootpath / "tests" / "results")
