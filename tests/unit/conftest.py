"""Karpenter's schema of a NodePool, for all tests of this folder: an installation has it, a fresh checkout makes it."""

import pytest

import build_karpenter_schema
from reconciler.sources.input_file import karpenter_schema
from tests import folders


@pytest.fixture(scope="session", autouse=True)
def packaged_schema() -> None:
    """Makes the schema before the first test, so that no test depends on an earlier test that made the schema."""
    build_karpenter_schema.make(folders.REPOSITORY)
    karpenter_schema.cache_clear()
