"""Tests of reconciler/policy/rules."""
