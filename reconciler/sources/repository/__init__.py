"""What reading a revision stands on: git itself, bounded and told nothing by anybody's settings."""
