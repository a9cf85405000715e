"""HTTP endpoints of a running reconciler."""
