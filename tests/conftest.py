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


MISSING = pytest.StashKey[str]()


@pytest.fixture(scope="session")
def lab(pytestconfig: pytest.Config) -> Iterator[Lab]:
    """The control plane, one for the whole run; tests start on it what else they need."""
    try:
        built = build.built()
    except LabUnavailable as missing:
        if os.environ.get("CI") == "true":
            pytest.exit(f"the lab is missing, and CI must not go without: {missing}", returncode=1)
        pytestconfig.stash[MISSING] = str(missing)
        pytest.skip(f"no lab: {missing}")
    with Lab(built) as lab:
        yield lab


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if MISSING in config.stash:
        skipped = len(terminalreporter.stats.get("skipped", ()))
        line = f"NO LAB, {skipped} TESTS DID NOT RUN: {config.stash[MISSING]}"
        terminalreporter.write_line(line, red=True, bold=True)


@pytest.fixture
def cluster(lab: Lab) -> Iterator[Lab]:
    """The lab with nothing on it; what a test leaves behind is taken away."""
    lab.wipe()
    yield lab
    lab.wipe()


@pytest.fixture
def recorder(request: pytest.FixtureRequest) -> Recorder:
    """Writes the figures of a long test to tests/results."""
    return Recorder(request.config.rootpath / "tests" / "results")
