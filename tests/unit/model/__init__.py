"""Tests of reconciler/model."""
