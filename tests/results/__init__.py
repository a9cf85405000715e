"""Figures of the long runs, one JSON file each, which the documentation cites."""
