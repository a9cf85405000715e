"""Karpenter's schema, compiled for tests."""

import os

import pytest

from reconciler.policy.manifests.kubernetes_schema import Structural
from reconciler.sources.input_file import karpenter_schema


@pytest.fixture(scope="session")
def structural() -> Structural:
    """The schema of a NodePool, compiled; where it can't be had its tests are skipped, but not under CI."""
    schema = karpenter_schema()
    if schema is None:
        missing = "Karpenter's schema can't be had: `python build_karpenter_schema.py` says why"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    return Structural(schema)
