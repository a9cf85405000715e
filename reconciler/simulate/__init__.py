"""An imagined cluster, on which the real loop runs."""
