"""Tests of reconciler/plan/guards."""
