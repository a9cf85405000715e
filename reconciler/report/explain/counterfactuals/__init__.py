"""Changes that would make a node a drain candidate: for each reason, the nearest change that removes it."""
