"""Tests of reconciler/plan/holds."""
