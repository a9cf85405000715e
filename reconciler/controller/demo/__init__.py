"""What the demo shows: the example fleet, a pull request to it, and an imagined cluster that follows it."""
