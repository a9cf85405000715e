"""Report of a plan: changes, their effect on nodes, GPUs, pods and cost, and holds."""
