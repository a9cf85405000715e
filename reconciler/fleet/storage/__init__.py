"""Volumes as in the scheduler: existing volumes, requirements of pods, and where they can be satisfied."""
