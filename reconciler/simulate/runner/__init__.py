"""Runs plays: scenarios with all their inputs."""
