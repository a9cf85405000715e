"""Tests of reconciler/plan."""
