"""Tests of reconciler/simulate."""
