"""Tests of reconciler/fleet."""
