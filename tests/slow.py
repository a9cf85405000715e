"""Parts of a parametrized test that `make test` leaves to `make test-long`."""

from typing import Any

import pytest


def long(*values: Any) -> Any:
    """One set of parameters that is tried by `make test-long` only."""
    return pytest.param(*values, marks=pytest.mark.long)
