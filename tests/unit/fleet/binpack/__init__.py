"""Tests of reconciler/fleet/binpack."""
