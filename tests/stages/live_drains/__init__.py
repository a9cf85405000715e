"""Worlds in which nodes are drained, the controller that does it by a fast clock, and what happened meanwhile."""
