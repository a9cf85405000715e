"""Tests of reconciler/simulate/invariants."""
