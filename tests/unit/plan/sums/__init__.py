"""Tests of reconciler/plan/sums."""
