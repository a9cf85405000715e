"""Benchmarks of the scheduler extender: its answers, and pods bound through the lab."""
