"""Labs that are stopped at any moment, and leave nothing behind."""
