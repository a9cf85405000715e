"""Tests of reconciler/controller/simulation."""
