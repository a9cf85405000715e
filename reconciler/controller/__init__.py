"""Connects implementations to ports for the commands. The only package that does."""
