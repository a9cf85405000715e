"""Tests of reconciler/serve."""
