"""Policies that are kept as custom resources: written as such, read again, and told of by their fields."""
