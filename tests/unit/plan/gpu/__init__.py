"""Tests of the gpu planner."""
