"""Decisions: pure functions from what is wished and what is seen."""
