"""Parses policy files into one checked Desired per environment. Pure."""
