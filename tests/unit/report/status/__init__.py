"""Tests of reconciler/report/status."""
