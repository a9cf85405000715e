"""Nodes that are emptied and given up on a real cluster."""
