"""Tests of reconciler/report/explain."""
