"""What a scenario says, and how its text is read."""
