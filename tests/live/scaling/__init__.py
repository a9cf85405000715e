"""Nodes that are marked, kept and deleted on a real cluster."""
