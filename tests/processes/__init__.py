"""Tests that start processes: commands as a person calls them, and the renderer with its child."""
