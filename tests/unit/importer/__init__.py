"""Tests of reconciler/importer."""
