"""Tests of reconciler/simulate/controller."""
