"""HTTP: what a running reconciler answers."""
