"""Tests of reconciler/controller."""
