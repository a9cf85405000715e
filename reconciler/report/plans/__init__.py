"""The report of a plan: what changes, what that does to nodes, GPUs, pods and the bill, and what is held."""
