"""What there is when a simulation begins."""
