"""Tests of reconciler/plan/scaling."""
