"""Tests of reconciler/protocol."""
