"""Tests of reconciler/sources."""
