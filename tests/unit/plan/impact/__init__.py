"""Tests of reconciler/plan/impact."""
