"""Converts flags of a Cluster Autoscaler to a DrainPolicy."""
