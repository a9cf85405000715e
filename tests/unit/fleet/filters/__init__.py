"""Tests of reconciler/fleet/filters."""
