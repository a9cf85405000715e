"""Tests of reconciler/kube/watch."""
