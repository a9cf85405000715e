"""Fleets drawn at random that are drained for hours, and what must come of it."""
