"""Tests of reconciler/fleet/topology."""
