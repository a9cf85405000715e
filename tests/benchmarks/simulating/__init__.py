"""A large fleet that is simulated for days."""
