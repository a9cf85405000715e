"""Tests of reconciler/fleet/snapshot."""
