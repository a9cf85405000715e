"""Tests of reconciler/loop."""
