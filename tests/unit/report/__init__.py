"""Tests of reconciler/report."""
