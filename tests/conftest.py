"""Fixtures that any test may ask for: the lab, a clean cluster on it, and a place for figures."""

import os
from collections.abc import Iterator

import pytest

from tests.lab import build
from tests.lab.lab import Lab
from tests.lab.toolchain import LabUnavailable
from tests.results.record import Recorder

pytest_plugins = ["tests.budget"]


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """The control plane, one for the whole run; tests start on it what else they need."""
    try:
        built = build.built()
    except LabUnavailable as missing:
        if os.environ.get("CI") == "true":
            pytest.exit(f"the lab is missing, and CI must not go without: {missing}", returncode=1)
        pytest.skip(f"NO LAB: {missing}")
    with Lab(built) as lab:
        yield lab


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
