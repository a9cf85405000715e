"""Tests of reconciler/simulate/scenario."""
