"""Tests of reconciler/simulate/results."""
