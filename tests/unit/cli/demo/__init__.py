"""Tests of reconciler/cli/demo."""
