"""Tests of the pressure planner."""
