"""Holds: their classes (blocked or waiting, at rest), and nodes that no planner continues."""
