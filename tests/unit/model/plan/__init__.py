"""Tests of reconciler/model/plan."""
