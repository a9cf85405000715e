"""Tests of reconciler/simulate/workloads."""
