"""Tests of reconciler/plan/status."""
