"""GPU claims with the real second scheduler."""
