"""Executes decisions as writes: one function per verb, each with preconditions that the API server checks."""
