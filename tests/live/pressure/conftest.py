"""What acts here is the reconciler: it has the control plane to itself."""

import pytest

from tests.lab.lab import Lab


@pytest.fixture(scope="module", autouse=True)
def alone(lab: Lab) -> None:
    lab.stop_parts()
