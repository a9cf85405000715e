"""What it costs to read a fleet."""
