"""Tests of reconciler/policy/manifests."""
