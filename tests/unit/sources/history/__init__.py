"""Tests of reconciler/sources/history."""
