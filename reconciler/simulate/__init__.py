"""Simulates a cluster on which the real control loop runs."""
