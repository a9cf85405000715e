"""Sums over nodes: how they are used, and what they cost."""
