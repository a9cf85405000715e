"""Benchmarks of reconciler/fleet/devices."""
