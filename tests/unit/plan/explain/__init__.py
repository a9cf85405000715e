"""Tests of reconciler/plan/explain."""
