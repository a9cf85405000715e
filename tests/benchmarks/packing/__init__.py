"""How fast pods are packed onto new nodes, how well, and how that grows."""
