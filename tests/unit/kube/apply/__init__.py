"""Tests of reconciler/kube/apply."""
