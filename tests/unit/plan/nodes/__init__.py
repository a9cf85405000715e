"""Tests of reconciler/plan/nodes."""
