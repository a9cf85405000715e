"""Tests of reconciler/report/formats."""
