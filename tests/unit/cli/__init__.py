"""Tests of reconciler/cli."""
