"""What a feature declares for the rest of the program."""
