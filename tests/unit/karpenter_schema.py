"""Karpenter's schema for tests: what the build made, or makes now."""

import os

import pytest

import build_karpenter_schema
from reconciler.policy.manifests.structural import Structural
from reconciler.sources.defaults import karpenter_schema
from tests.lab.places import REPOSITORY


@pytest.fixture(scope="session")
def structural() -> Structural:
    """The schema of a NodePool, compiled; where it can't be had its tests are skipped, but not under CI."""
    build_karpenter_schema.make(REPOSITORY)
    karpenter_schema.cache_clear()
    schema = karpenter_schema()
    if schema is None:
        missing = "Karpenter's schema can't be had: `python build_karpenter_schema.py` says why"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    return Structural(schema)
