"""Tests of reconciler/plan/manifests."""
