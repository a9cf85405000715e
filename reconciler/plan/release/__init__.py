"""Everything of ours taken off a cluster."""
