"""Tests of reconciler/simulate/runner."""
