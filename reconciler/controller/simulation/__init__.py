"""Scenarios read, played and told."""
