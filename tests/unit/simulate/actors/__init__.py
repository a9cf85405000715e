"""Tests of reconciler/simulate/actors."""
