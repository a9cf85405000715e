"""Tests of reconciler/plan/drain."""
