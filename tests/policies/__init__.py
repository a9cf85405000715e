"""Policies that are good, and policies that are bad in one way each."""
