"""Tests of reconciler/policy."""
