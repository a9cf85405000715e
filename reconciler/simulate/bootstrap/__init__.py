"""The initial state of a simulation."""
