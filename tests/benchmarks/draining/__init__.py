"""How fast it is found which nodes can go together, and how that grows."""
