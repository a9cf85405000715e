"""Imports NodePools of a cluster as policies and templates."""
