"""Nodes that could not be emptied, in thought or in earnest, and what is kept in mind of that."""
