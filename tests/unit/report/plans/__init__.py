"""Tests of reconciler/report/plans."""
