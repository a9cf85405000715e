"""Tests of reconciler/plan/capacity."""
