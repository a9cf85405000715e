"""Frozen values that all other packages share."""
