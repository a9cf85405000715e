"""Tests of reconciler/cli/files."""
