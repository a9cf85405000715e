"""Tests of reconciler/fleet/storage."""
