"""Loads and runs scenarios, and reports their results."""
