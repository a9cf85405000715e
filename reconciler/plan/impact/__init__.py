"""Nodes that our planners take away, now or later, as consequences of a plan: nodes, GPUs, evictions and money."""
