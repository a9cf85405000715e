"""Tests of reconciler/kube."""
