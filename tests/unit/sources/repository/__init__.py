"""Tests of reconciler/sources/repository."""
