"""Tests of reconciler/schema."""
