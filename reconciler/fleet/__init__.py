"""Scheduling simulation: a snapshot of the cluster for what-if questions. Pure."""
