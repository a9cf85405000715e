"""Tests of reconciler/policy/custom_resources."""
