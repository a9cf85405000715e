"""Tests of reconciler/simulate/bootstrap."""
