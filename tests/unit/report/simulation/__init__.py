"""Tests of reconciler/report/simulation."""
