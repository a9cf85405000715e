"""The planners: pure functions from the desired policies and the observed cluster to decisions."""
