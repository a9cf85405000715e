"""Declarations of features for the rest of the program."""
