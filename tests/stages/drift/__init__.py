"""Edits of NodePools whose nodes are there, and what drifts of them."""
