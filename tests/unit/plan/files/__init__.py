"""Tests of reconciler/plan/files."""
